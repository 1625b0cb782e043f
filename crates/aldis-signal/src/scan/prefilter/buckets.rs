//! The order of literals that makes the search fast.
//!
//! The searcher puts each literal into one of a few buckets by its number, and of each bucket it
//! compares only half bytes: the left and right halves that any of its literals has at a place. A
//! bucket of literals that have little in common lets through many mixtures of them, and each costs
//! a closer look. So literals are numbered such that a bucket's mixtures are rare in ordinary text.

use super::Literal;

/// How many literals may always share a bucket.
const SHARE_MIN: usize = 4;
/// How many bytes of a literal are compared at first.
const COMPARED_MAX: usize = 4;

/// Puts literals in order for a search with `count` buckets. Some come twice, where a bucket is not
/// full.
pub(crate) fn arranged(literals: &[Literal], count: usize) -> Vec<Literal> {
    let width = literals.iter().map(|literal| literal.text.len()).min().unwrap_or(0);
    let width = width.min(COMPARED_MAX);
    let share = literals.len().div_ceil(count).max(SHARE_MIN);
    let mut buckets = vec![Bucket::default(); count];
    // What is common by itself chooses first.
    let alone = |literal: &Literal| Halves::default().and(&literal.text[..width]).weight(width);
    let mut order: Vec<(f32, &Literal)> =
        literals.iter().map(|literal| (alone(literal), literal)).collect();
    order.sort_by(|left, right| right.0.total_cmp(&left.0));
    for (_, literal) in order {
        let start = &literal.text[..width];
        let costs = |bucket: &Bucket<'_>| bucket.halves.and(start).weight(width) - bucket.weight;
        // Of empty ones the first will do.
        let used = buckets.iter().filter(|bucket| !bucket.literals.is_empty()).count();
        let open = buckets.iter_mut().take(used + 1);
        let open = open.filter(|bucket| bucket.literals.len() < share);
        let best = open
            .map(|bucket| (costs(bucket), bucket))
            .min_by(|left, right| left.0.total_cmp(&right.0));
        if let Some((cost, bucket)) = best {
            bucket.halves = bucket.halves.and(start);
            bucket.weight += cost;
            bucket.literals.push(literal);
        }
    }
    buckets.sort_by_key(|bucket| std::cmp::Reverse(bucket.literals.len()));
    let rows = buckets.first().map_or(0, |bucket| bucket.literals.len());
    let first = buckets.first().and_then(|bucket| bucket.literals.first());
    let mut numbered = Vec::with_capacity(rows * count);
    for row in 0..rows {
        for bucket in &buckets {
            // A literal that comes again goes to where it is, whatever its number.
            let literal = bucket.literals.get(row).or_else(|| bucket.literals.first()).or(first);
            numbered.extend(literal.map(|literal| (*literal).clone()));
        }
    }
    numbered
}

/// Literals that are looked for together.
#[derive(Clone, Default)]
struct Bucket<'l> {
    literals: Vec<&'l Literal>,
    halves: Halves,
    weight: f32,
}

/// The left and right halves of bytes that occur at each place, as sets of bits.
#[derive(Clone, Copy, Default)]
struct Halves([(u16, u16); COMPARED_MAX]);

impl Halves {
    fn and(mut self, start: &[u8]) -> Self {
        for (halves, byte) in self.0.iter_mut().zip(start) {
            halves.0 |= 1 << (byte >> 4);
            halves.1 |= 1 << (byte & 15);
        }
        self
    }

    /// Returns how often a mixture is to be expected.
    fn weight(&self, width: usize) -> f32 {
        self.0[..width].iter().map(|halves| commonness(*halves)).product()
    }
}

/// Returns the share of ordinary text that is made of these halves.
fn commonness((left, right): (u16, u16)) -> f32 {
    bits(left).flat_map(|left| bits(right).map(move |right| SHARES[left << 4 | right])).sum()
}

fn bits(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

const SHARES: [f32; 256] = {
    let (mut shares, mut byte) = ([0.0; 256], 0);
    while byte < 256 {
        shares[byte] = share(byte as u8);
        byte += 1;
    }
    shares
};

/// Returns roughly how common a byte is in prose, code and logs.
const fn share(byte: u8) -> f32 {
    match byte {
        b' ' => 0.15,
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 0.05,
        b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'f' | b'h' | b'g' => 0.02,
        b'a'..=b'z' => 0.006,
        b'\n' | b'_' | b'.' | b',' | b'-' | b'"' | b'/' | b'0'..=b':' => 0.01,
        b'(' | b')' | b'=' | b'\'' | b'`' | b'{' | b'}' | b'[' | b']' => 0.005,
        b'!'..=b'~' => 0.002,
        0x80.. => 0.001,
        _ => 0.0001,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kinds;
    use super::*;

    #[test]
    fn every_literal_has_its_number_and_all_fit() {
        for count in 0..=64_usize {
            let word = |index: usize| format!("{:x}-{index}", index * 7919 % 4096);
            let literals: Vec<Literal> =
                (0..count).map(|index| Literal::new(&word(index), Kinds::LINE)).collect();
            let buckets = if count <= 32 { 8 } else { 16 };
            let numbered = arranged(&literals, buckets);
            assert!(numbered.len() <= 4 * buckets, "{count}");
            let mut distinct = numbered;
            distinct.sort();
            distinct.dedup();
            let mut all = literals;
            all.sort();
            assert_eq!(distinct, all);
        }
    }
}
