//! No text makes a matcher slow: 256 KiB of each kind take a fraction of a second where time is
//! linear, and minutes where it is not. Exact growth is measured by the benchmarks.

use std::time::{Duration, Instant};

use aldis::app::reference;
use aldis_signal::dialect::builtins;
use aldis_signal::{Origin, Rules, scan};
use aldis_testkit::corpus::bulk::{ADVERSARIAL, adversarial};

const BYTES: usize = 1 << 18;
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn matching_stays_linear() {
    for kind in ADVERSARIAL {
        let text = adversarial(kind, BYTES);
        let start = Instant::now();
        reference::scan(builtins(), &text, &Origin::assistant());
        let took = start.elapsed();
        assert!(took < LIMIT, "reference matching takes {took:?} for {}", kind.name);
        let start = Instant::now();
        scan(Rules::builtin(), text.as_bytes(), &Origin::assistant());
        let took = start.elapsed();
        assert!(took < LIMIT, "careful matching takes {took:?} for {}", kind.name);
    }
}
