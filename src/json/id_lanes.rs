//! Ids of sixteen logs side by side: SHA-1 of one block each (FIPS 180-4), a message a lane of the registers of AVX-512.
//!
//! The instructions for SHA-1 work on one message, whose rounds wait for each other; lanes wait together.
//! `docs/decisions/0012-log-writer.md` has the figures.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_rol_epi32, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_shuffle_epi8,
    _mm512_shuffle_i32x4, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::ids::{BLOCK, INITIAL_STATE};

/// Messages at a time.
pub(super) const LANES: usize = 16;

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

/// Swaps the bytes of each word.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn big_endian(words: __m512i) -> __m512i {
    let order = _mm512_setr_epi32(
        0x0001_0203,
        0x0405_0607,
        0x0809_0a0b,
        0x0c0d_0e0f,
        0x0001_0203,
        0x0405_0607,
        0x0809_0a0b,
        0x0c0d_0e0f,
        0x0001_0203,
        0x0405_0607,
        0x0809_0a0b,
        0x0c0d_0e0f,
        0x0001_0203,
        0x0405_0607,
        0x0809_0a0b,
        0x0c0d_0e0f,
    );
    _mm512_shuffle_epi8(words, order)
}

/// Four rows of four words in each quarter become four columns.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (low_two, high_two) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(low, low_two),
        _mm512_unpackhi_epi64(low, low_two),
        _mm512_unpacklo_epi64(high, high_two),
        _mm512_unpackhi_epi64(high, high_two),
    ]
}

/// Rows of quarters become columns of quarters.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn across([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_even, ab_odd) = (
        _mm512_shuffle_i32x4::<0x88>(a, b),
        _mm512_shuffle_i32x4::<0xdd>(a, b),
    );
    let (cd_even, cd_odd) = (
        _mm512_shuffle_i32x4::<0x88>(c, d),
        _mm512_shuffle_i32x4::<0xdd>(c, d),
    );
    [
        _mm512_shuffle_i32x4::<0x88>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0x88>(ab_odd, cd_odd),
        _mm512_shuffle_i32x4::<0xdd>(ab_even, cd_even),
        _mm512_shuffle_i32x4::<0xdd>(ab_odd, cd_odd),
    ]
}

/// The ids (UUID version 5, RFC 9562) of messages that are padded blocks.
#[target_feature(enable = "avx512f,avx512bw")]
#[expect(unsafe_code, reason = "bytes as registers")]
pub(super) fn ids(messages: &[[u8; BLOCK]; LANES]) -> [[u8; 16]; LANES] {
    // SAFETY: 64 bytes are the bits of a register.
    let rows = unsafe { std::mem::transmute::<[[u8; BLOCK]; LANES], [__m512i; LANES]>(*messages) };
    // Word j of all messages in one register.
    let mut words = [splat(0); 16];
    let mut columns = [[splat(0); 4]; 4];
    for (place, column) in columns.iter_mut().enumerate() {
        *column = quarters([
            rows[4 * place],
            rows[4 * place + 1],
            rows[4 * place + 2],
            rows[4 * place + 3],
        ]);
    }
    for word in 0..4 {
        let of_all = across([
            columns[0][word],
            columns[1][word],
            columns[2][word],
            columns[3][word],
        ]);
        for (quarter, lanes) in of_all.into_iter().enumerate() {
            words[4 * quarter + word] = big_endian(lanes);
        }
    }
    let initial = [
        splat(INITIAL_STATE[0]),
        splat(INITIAL_STATE[1]),
        splat(INITIAL_STATE[2]),
        splat(INITIAL_STATE[3]),
        splat(INITIAL_STATE[4]),
    ];
    let [mut a, mut b, mut c, mut d, mut e] = initial;
    macro_rules! rounds {
        ($constant:expr, $logic:expr; $($round:literal)*) => {
            let constant = splat($constant);
            $({
                let round: usize = $round;
                let at = round % 16;
                if round >= 16 {
                    // w[t-3] ^ w[t-8] ^ w[t-14] ^ w[t-16]
                    let three = _mm512_ternarylogic_epi32::<0x96>(words[(round - 3) % 16], words[(round - 8) % 16], words[(round - 14) % 16]);
                    words[at] = _mm512_rol_epi32::<1>(_mm512_xor_si512(three, words[at]));
                }
                let logic = _mm512_ternarylogic_epi32::<{ $logic }>(b, c, d);
                let sum = _mm512_add_epi32(_mm512_add_epi32(e, _mm512_add_epi32(words[at], constant)), logic);
                e = d;
                d = c;
                c = _mm512_rol_epi32::<30>(b);
                b = a;
                a = _mm512_add_epi32(_mm512_rol_epi32::<5>(a), sum);
            })*
        };
    }
    rounds!(0x5a82_7999, 0xca; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    rounds!(0x6ed9_eba1, 0x96; 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
    rounds!(0x8f1b_bcdc, 0xe8; 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
    rounds!(0xca62_c1d6, 0x96; 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79);
    // Of the digest an id has no more than this.
    let _ = e;
    let [a, b, c, d] = [(a, 0), (b, 1), (c, 2), (d, 3)].map(|(word, at)| _mm512_add_epi32(word, initial[at]));
    // The version is the high half of byte 6, the variant the two highest bits of byte 8: 0xea is (x & y) | z.
    let b = _mm512_ternarylogic_epi32::<0xea>(b, splat(0xffff_0fff), splat(0x5000));
    let c = _mm512_ternarylogic_epi32::<0xea>(c, splat(0x3fff_ffff), splat(0x8000_0000));
    let ids = across(quarters([
        big_endian(a),
        big_endian(b),
        big_endian(c),
        big_endian(d),
    ]));
    // SAFETY: as above.
    unsafe { std::mem::transmute::<[__m512i; 4], [[u8; 16]; LANES]>(ids) }
}
