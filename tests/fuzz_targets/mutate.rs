//! Mutations of inputs, drawn by a seed.

/// Draws inputs.
pub(crate) struct Mutator {
    rng: fastrand::Rng,
}

/// Longer inputs only cost time.
const LENGTH_MAX: usize = 1 << 16;

/// Pieces that parsers look for, and numbers at the edges.
const PIECES: &[&str] = &[
    "null",
    "true",
    "{}",
    "[]",
    "[[",
    "\"\"",
    "\\u0000",
    "\\ud800",
    "0x",
    "0x0",
    "-1",
    "1e999",
    "0.0000001",
    "18446744073709551616",
    "0xffffffffffffffff",
    "0x10000000000000000",
    "latest",
    "%00",
    "%2525",
    "%ff",
    "&",
    "=",
    ",",
    ";",
    "#",
    "?",
    "/../",
    "\n",
    "\r\n",
    "\u{feff}",
    "\u{661}",
    "\u{1f4a9}",
    "9999-12-31",
    "1970-01-01",
    "\"hash\"",
    "\"number\"",
    "\"transactions\"",
    "chainId",
    "native",
    "stable",
    "\"",
];

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// One of these, changed in one to eight places.
    pub(crate) fn draw(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one(corpus).to_vec();
        let changes = 1 << self.rng.u32(..4);
        for _ in 0..self.rng.u32(1..=changes) {
            self.change(&mut input, corpus);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn one<'a>(&mut self, corpus: &'a [Vec<u8>]) -> &'a [u8] {
        &corpus[self.rng.usize(..corpus.len())]
    }

    /// A piece of an input, short ones more often.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let most = if self.rng.bool() { len.min(8) } else { len };
        let size = self.rng.usize(..=most);
        let from = self.rng.usize(..=len - size);
        from..from + size
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let len = input.len();
        if len == 0 {
            input.push(self.rng.u8(..));
            return;
        }
        let at = self.rng.usize(..len);
        match self.rng.u8(..12) {
            0 => input[at] ^= 1 << self.rng.u8(..8),
            1 => input[at] = [0, 1, 0x7f, 0x80, 0xff][self.rng.usize(..5)],
            2 => input[at] = self.rng.u8(..),
            3 => input[at] = input[at].wrapping_add(self.rng.u8(..3).wrapping_sub(1)),
            4 => input.truncate(at),
            5 => drop(input.drain(self.range(len))),
            6 => {
                let piece = input[self.range(len)].to_vec();
                input.splice(at..at, piece);
            }
            7 => {
                let other = self.one(corpus).to_vec();
                let piece = other[self.range(other.len())].to_vec();
                let over = self.range(len);
                input.splice(over, piece);
            }
            8 => {
                let piece = PIECES[self.rng.usize(..PIECES.len())];
                let over = self.range(len);
                input.splice(over, piece.bytes());
            }
            9 => {
                let piece = PIECES[self.rng.usize(..PIECES.len())];
                input.splice(at..at, piece.bytes());
            }
            // Another digit in place of one.
            10 => {
                let digit = input[at..].iter().position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    input[at + digit] = b'0' + self.rng.u8(..10);
                }
            }
            _ => {
                let count = self.rng.usize(1..64);
                let byte = input[at];
                input.splice(at..at, std::iter::repeat_n(byte, count));
            }
        }
    }
}
