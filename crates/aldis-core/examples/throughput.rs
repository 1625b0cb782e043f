//! Scratch.
fn cpu() -> u128 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse().unwrap()
}
struct Instant(u128);
struct El(u128);
impl El {
    fn as_nanos(&self) -> u128 {
        self.0
    }
}
impl Instant {
    fn now() -> Self {
        Self(cpu())
    }
    fn elapsed(&self) -> El {
        El(cpu() - self.0)
    }
}
fn main() {
    let text = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let rules = aldis_core::Rules::builtin();
    let origin = aldis_core::Origin::assistant();
    let (mut mb, mut sb) = (u128::MAX, u128::MAX);
    let mut c = (0, 0);
    for _ in 0..15 {
        let t = Instant::now();
        let n = memchr::memchr(0, &text);
        assert!(n.is_none());
        mb = mb.min(t.elapsed().as_nanos());
        let t = Instant::now();
        let f = aldis_core::scan(rules, &text, &origin);
        sb = sb.min(t.elapsed().as_nanos());
        let sig = f.iter().filter(|f| f.signal().is_some()).count();
        c = (sig, f.len() - sig);
    }
    println!("memchr {:.1} GB/s scan {:.2} GB/s = {:.0}%  signals {c:?}", text.len() as f64/mb as f64, text.len() as f64/sb as f64, 100.0*mb as f64/sb as f64);
}
