//! Chance that comes from the seed and from what it is for, never from who comes first: the third request for a key
//! meets the same fate in every run.

use fastrand::Rng;

#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// For `what` happens to `whom`, the `time`-th time.
    pub fn roll(self, what: &str, whom: &str, time: u32) -> Rng {
        Rng::with_seed(fnv(&[
            &self.0.to_le_bytes(),
            what.as_bytes(),
            &[0],
            whom.as_bytes(),
            &time.to_le_bytes(),
        ]))
    }
}

/// FNV-1a: the same in every version of Rust, which the standard library's hashes are not.
fn fnv(parts: &[&[u8]]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

/// One of these, each as often as its weight says.
pub fn weighted<T: Copy>(rng: &mut Rng, choices: &[(u32, T)]) -> T {
    let all: u32 = choices.iter().map(|(weight, _)| weight).sum();
    let mut place = rng.u32(0..all);
    for (weight, choice) in choices {
        if place < *weight {
            return *choice;
        }
        place -= weight;
    }
    unreachable!("the place is less than the sum")
}
