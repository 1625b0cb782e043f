"""How long the patterns of seeds 000 and 001 take to find everything in a file.

Prints the median of five runs in seconds of processor time. Reading the file is not counted.
"""

import sys
import time

from goldens import CAW_PATTERNS, DELIVERY_PATTERNS


def seconds(text):
    """Times one pass of every pattern."""
    start = time.process_time()
    for pattern in [*CAW_PATTERNS.values(), *DELIVERY_PATTERNS.values()]:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - start


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        text = file.read()
    print(sorted(seconds(text) for _ in range(5))[2])


if __name__ == "__main__":
    main()
