//! A hash for states. The standard one withstands keys that were chosen to collide, which takes two thirds of a
//! search's time in a build without optimisation. A poor hash costs time only: states are compared whole.

use std::hash::Hasher;

#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write_u64(&mut self, word: u64) {
        // As in Firefox and rustc ("FxHash").
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u8(byte));
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    // The number of an enum's variant.
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, and the product's best bits are the high ones.
        self.0.rotate_left(26)
    }
}
