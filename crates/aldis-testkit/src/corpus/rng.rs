//! A small seeded generator (splitmix64), so that a seed means the same samples on every machine
//! and in every version of every library.

/// A source of reproducible choices.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`; 0 for a limit of 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.bits()) * limit as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Returns a number of the half-open range.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low))
    }

    /// Returns true `percent` times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    ///
    /// # Panics
    ///
    /// Panics on an empty list: the tables of the corpus have none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}
