//! Hex of 32 bytes, for each kind of processor.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm256_and_si256, _mm256_cvtepu8_epi16, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16, _mm512_cvtepu8_epi16, _mm512_set1_epi8,
    _mm512_shuffle_epi8, _mm512_slli_epi16, _mm512_srli_epi16, _mm512_ternarylogic_epi64,
};

/// The digits, once for each 16 bytes of a register.
const DIGITS: [u8; 64] = *b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Each byte becomes two: its high nibble and then its low one, which choose a digit.
#[target_feature(enable = "avx512f,avx512bw")]
#[expect(unsafe_code, reason = "bytes as registers")]
pub(super) fn with_avx512(bytes: &[u8; 32]) -> [u8; 64] {
    // SAFETY: 32 and 64 bytes are the bits of a register.
    let (bytes, digits) = unsafe {
        (
            std::mem::transmute::<[u8; 32], __m256i>(*bytes),
            std::mem::transmute::<[u8; 64], __m512i>(DIGITS),
        )
    };
    let wide = _mm512_cvtepu8_epi16(bytes);
    let (high, low) = (_mm512_srli_epi16::<4>(wide), _mm512_slli_epi16::<8>(wide));
    // 15 & (high | low)
    let nibbles = _mm512_ternarylogic_epi64::<0xe0>(_mm512_set1_epi8(15), high, low);
    let text = _mm512_shuffle_epi8(digits, nibbles);
    // SAFETY: as above.
    unsafe { std::mem::transmute::<__m512i, [u8; 64]>(text) }
}

/// The same in two halves.
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "bytes as registers")]
pub(super) fn with_avx2(bytes: &[u8; 32]) -> [u8; 64] {
    // SAFETY: 16 and 32 bytes are the bits of a register.
    let (halves, [digits, _]) = unsafe {
        (
            std::mem::transmute::<[u8; 32], [__m128i; 2]>(*bytes),
            std::mem::transmute::<[u8; 64], [__m256i; 2]>(DIGITS),
        )
    };
    let text = halves.map(|half| {
        let wide = _mm256_cvtepu8_epi16(half);
        let both = _mm256_or_si256(_mm256_srli_epi16::<4>(wide), _mm256_slli_epi16::<8>(wide));
        _mm256_shuffle_epi8(digits, _mm256_and_si256(both, _mm256_set1_epi8(15)))
    });
    // SAFETY: as above.
    unsafe { std::mem::transmute::<[__m256i; 2], [u8; 64]>(text) }
}
