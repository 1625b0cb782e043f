//! Tells the linker that Node brings the symbols of its interface.

fn main() {
    napi_build::setup();
}
