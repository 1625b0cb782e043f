# What the scripts of every kind of package share. Sourced, with the repository as working directory.
# shellcheck shell=bash

ROOT=$PWD
TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
HOST_TARGET=$(rustc -vV 2>/dev/null | sed -n 's/^host: //p' || true)
# The platform a package is for, by Rust's name.
TARGET=${ALDIS_TARGET:-${HOST_TARGET:-x86_64-unknown-linux-gnu}}
# Files in packages have the time of the commit, so that the same commit gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# What the program is called in packages, whatever ALDIS_BINARY is called.
PROGRAM=aldis
[[ $TARGET != *windows* ]] || PROGRAM=aldis.exe

# The oldest C library that the binary for Linux runs with: Debian 10, Ubuntu 20.04, RHEL 8.
GLIBC=2.28

note() {
    echo "-- $*" >&2
}

fail() {
    echo "error: $1" >&2
    [[ -z ${2:-} ]] || echo "       $2" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || fail "\`$1\` is not on the PATH" "$2"
}

# Where a Python environment has its programs.
programs_of() {
    if [[ -d $1/Scripts ]]; then echo "$1/Scripts"; else echo "$1/bin"; fi
}

# Puts maturin and the rest of packaging/requirements.txt on the PATH: an environment
# of its own, made once.
python_tools() {
    local venv=$TARGET_DIR/packaging/tools
    if ! cmp -s packaging/requirements.txt "$venv/done"; then
        note "Installing the tools of packaging/requirements.txt, once"
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$(programs_of "$venv")/python" -m pip install --quiet --disable-pip-version-check -r packaging/requirements.txt
        cp packaging/requirements.txt "$venv/done"
    fi
    PATH=$(programs_of "$venv"):$PATH
}

# What a package contains depends on nobody's settings: no flags but these, no path of this machine.
release_flags() {
    export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$ROOT=/aldis"
}

# Builds the wheel and, in it, the program of every other kind: one build serves all of them. On Linux
# it is linked by zig, against the symbols of the C library GLIBC. Sets WHEELS and BINARY.
build() {
    local options
    BINARY=$TARGET_DIR/$TARGET/dist/$PROGRAM
    WHEELS=$TARGET_DIR/packaging/wheels-$TARGET
    rm -rf "$WHEELS"
    options=(--profile dist --target "$TARGET" --out "$WHEELS")
    if [[ $TARGET == *linux-gnu ]]; then
        options+=(--zig --compatibility "manylinux_${GLIBC/./_}")
    fi
    python_tools
    stage wheel
    cp packaging/wheel/README.md "$STAGE/"
    licences "$STAGE"
    sed "s|^manifest-path = .*|manifest-path = \"$ROOT/crates/aldis/Cargo.toml\"|" \
        packaging/wheel/pyproject.toml >"$STAGE/pyproject.toml"
    note "Building aldis $VERSION for $TARGET; with link-time optimization that takes several minutes"
    (
        release_flags
        cd "$STAGE" || exit
        maturin build "${options[@]}"
    )
}

# Sets BINARY: that of ALDIS_BINARY, or a new one of the profile `dist`.
binary() {
    if [[ -n ${ALDIS_BINARY:-} ]]; then
        BINARY=$(realpath "$ALDIS_BINARY")
        [[ -f $BINARY ]] || fail "ALDIS_BINARY names no file: $ALDIS_BINARY"
    else
        build
    fi
}

# Writes manual pages and completions, made by the binary itself, to DIR/man and DIR/completions.
shell_files() {
    mkdir -p "$1/completions"
    "$BINARY" man "$1/man" >/dev/null
    "$BINARY" completions bash >"$1/completions/aldis.bash"
    "$BINARY" completions fish >"$1/completions/aldis.fish"
    "$BINARY" completions zsh >"$1/completions/_aldis"
}

# Writes the licences: ours, and those of what is linked in.
licences() {
    mkdir -p "$1"
    cp LICENSE-APACHE LICENSE-MIT "$1/"
    local file=$TARGET_DIR/packaging/THIRD-PARTY-$TARGET.txt
    if [[ ! -f $file || Cargo.lock -nt $file ]]; then
        mkdir -p "$(dirname "$file")"
        python3 packaging/third-party "$TARGET" >"$file.new"
        mv "$file.new" "$file"
    fi
    cp "$file" "$1/THIRD-PARTY.txt"
}

# An empty directory for what becomes a package.
stage() {
    STAGE=$TARGET_DIR/packaging/$1
    rm -rf "$STAGE"
    mkdir -p "$STAGE"
}

# Says what was made, and how large it is.
made() {
    local file
    for file in "$@"; do
        note "$file ($(du -h --apparent-size "$file" 2>/dev/null | cut -f1))"
    done
}
