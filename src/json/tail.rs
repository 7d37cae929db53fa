//! Text written into room that was made before: for entries of known length, where looking whether there is room and where the end
//! lies costs more than the text.

use std::mem::MaybeUninit;

use super::writer::{EIGHT_DIGITS, eight_digits_text, leading_digits};

/// The free room of a buffer, filled from its beginning.
///
/// Pieces are copied in lengths that are known when this is compiled, also more than is kept: what comes next goes
/// over it.
pub(super) struct Tail<'o> {
    room: &'o mut [MaybeUninit<u8>],
    /// Bytes that were written, all of them.
    len: usize,
}

impl<'o> Tail<'o> {
    /// Room for at least `bytes`, and for the longest piece behind them.
    #[inline(always)]
    pub(super) fn new(out: &'o mut Vec<u8>, bytes: usize) -> Self {
        out.reserve(bytes + PIECE_MAX);
        Self {
            room: out.spare_capacity_mut(),
            len: 0,
        }
    }

    /// How many bytes were written: the text of the buffer may be made longer by so many.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Writes `text`, of which `kept` bytes stay.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, text: &[u8; N], kept: usize) {
        const { assert!(N <= PIECE_MAX, "a piece fits the room behind the text") }
        let Some(room) = self
            .room
            .get_mut(self.len..)
            .and_then(<[_]>::first_chunk_mut::<N>)
        else {
            debug_assert!(false, "room was made for less than is written");
            return;
        };
        room.write_copy_of_slice(text);
        self.len += kept.min(N);
    }

    /// Writes a piece of text.
    #[inline(always)]
    pub(super) fn piece<const N: usize>(&mut self, piece: &Piece<N>) {
        self.put(&piece.text, piece.len);
    }

    /// Writes a decimal number.
    #[inline(always)]
    pub(super) fn integer(&mut self, value: u64) {
        if value < EIGHT_DIGITS {
            let (text, len) = leading_digits(value);
            self.put(&text, len);
        } else {
            self.long_integer(value);
        }
    }

    #[inline(always)]
    fn long_integer(&mut self, value: u64) {
        let (above, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
        let (top, middle) = (above / EIGHT_DIGITS, above % EIGHT_DIGITS);
        if top == 0 {
            let (text, len) = leading_digits(middle);
            self.put(&text, len);
        } else {
            let (text, len) = leading_digits(top);
            self.put(&text, len);
            self.put(&eight_digits_text(middle), 8);
        }
        self.put(&eight_digits_text(low), 8);
    }
}

/// The longest piece.
const PIECE_MAX: usize = 128;

/// Text in room of a round length, so that copying it takes few instructions, none of which reads two pages.
#[repr(align(32))]
pub(super) struct Piece<const N: usize> {
    text: [u8; N],
    len: usize,
}

impl<const N: usize> Piece<N> {
    /// `text`, which must fit.
    pub(super) const fn new(text: &[u8]) -> Self {
        let mut room = [0; N];
        let mut at = 0;
        while at < text.len() {
            room[at] = text[at];
            at += 1;
        }
        Self {
            text: room,
            len: text.len(),
        }
    }

    /// Bytes of the text.
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}
