//! Keccak-f\[1600\] of several states at once, one in each lane of a vector register (FIPS 202, section 3).

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_andnot_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_slli_epi64,
    _mm256_srli_epi64, _mm256_xor_si256, _mm512_rol_epi64, _mm512_set1_epi64, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

/// `N` states, word by word: word `x + 5 y` of all of them, then the next.
pub(super) type State<const N: usize> = [[u64; N]; 25];

const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// The 24 rounds on an array of 25 registers. `$xor` takes two, `$parity` five, `$rotate` a distance and one,
/// `$choose` is `a ^ (!b & c)`, `$all` puts a word into every lane.
macro_rules! rounds {
    ($words:expr, $xor:ident, $parity:ident, $rotate:ident, $choose:ident, $all:ident) => {{
        let mut a = $words;
        for constant in ROUND_CONSTANTS {
            let c = [
                $parity(a[0], a[5], a[10], a[15], a[20]),
                $parity(a[1], a[6], a[11], a[16], a[21]),
                $parity(a[2], a[7], a[12], a[17], a[22]),
                $parity(a[3], a[8], a[13], a[18], a[23]),
                $parity(a[4], a[9], a[14], a[19], a[24]),
            ];
            let d = [
                $xor(c[4], $rotate::<1, 63>(c[1])),
                $xor(c[0], $rotate::<1, 63>(c[2])),
                $xor(c[1], $rotate::<1, 63>(c[3])),
                $xor(c[2], $rotate::<1, 63>(c[4])),
                $xor(c[3], $rotate::<1, 63>(c[0])),
            ];
            // Theta, rho and pi of the words that make up one row, then chi of the row.
            macro_rules! row {
                ($i0:literal $l0:literal, $i1:literal $l1:literal, $i2:literal $l2:literal,
                    $i3:literal $l3:literal, $i4:literal $l4:literal) => {{
                    let b0 = $rotate::<$l0, { 64 - $l0 }>($xor(a[$i0], d[$i0 % 5]));
                    let b1 = $rotate::<$l1, { 64 - $l1 }>($xor(a[$i1], d[$i1 % 5]));
                    let b2 = $rotate::<$l2, { 64 - $l2 }>($xor(a[$i2], d[$i2 % 5]));
                    let b3 = $rotate::<$l3, { 64 - $l3 }>($xor(a[$i3], d[$i3 % 5]));
                    let b4 = $rotate::<$l4, { 64 - $l4 }>($xor(a[$i4], d[$i4 % 5]));
                    [
                        $choose(b0, b1, b2),
                        $choose(b1, b2, b3),
                        $choose(b2, b3, b4),
                        $choose(b3, b4, b0),
                        $choose(b4, b0, b1),
                    ]
                }};
            }
            let [r0, r1, r2, r3, r4] = [
                row!(0 0, 6 44, 12 43, 18 21, 24 14),
                row!(3 28, 9 20, 10 3, 16 45, 22 61),
                row!(1 1, 7 6, 13 25, 19 8, 20 18),
                row!(4 27, 5 36, 11 10, 17 15, 23 56),
                row!(2 62, 8 55, 14 39, 15 41, 21 2),
            ];
            a = [
                $xor(r0[0], $all(constant.cast_signed())),
                r0[1], r0[2], r0[3], r0[4],
                r1[0], r1[1], r1[2], r1[3], r1[4],
                r2[0], r2[1], r2[2], r2[3], r2[4],
                r3[0], r3[1], r3[2], r3[3], r3[4],
                r4[0], r4[1], r4[2], r4[3], r4[4],
            ];
        }
        a
    }};
}

/// Eight states. Only for processors with `avx512f`.
#[expect(
    unsafe_code,
    reason = "calling code compiled for a feature that was found at run time; words as registers"
)]
pub(super) fn with_avx512(state: &mut State<8>) {
    #[target_feature(enable = "avx512f")]
    fn parity(a: __m512i, b: __m512i, c: __m512i, d: __m512i, e: __m512i) -> __m512i {
        _mm512_ternarylogic_epi64::<0x96>(_mm512_ternarylogic_epi64::<0x96>(a, b, c), d, e)
    }
    #[target_feature(enable = "avx512f")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(a: __m512i) -> __m512i {
        _mm512_rol_epi64::<LEFT>(a)
    }
    #[target_feature(enable = "avx512f")]
    fn choose(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        _mm512_ternarylogic_epi64::<0xd2>(a, b, c)
    }
    #[target_feature(enable = "avx512f")]
    fn permute(words: [__m512i; 25]) -> [__m512i; 25] {
        rounds!(words, _mm512_xor_si512, parity, rotate, choose, _mm512_set1_epi64)
    }
    // SAFETY: only called where the processor has the feature; eight words are the bits of a register.
    *state = unsafe {
        let words = std::mem::transmute::<State<8>, [__m512i; 25]>(*state);
        std::mem::transmute::<[__m512i; 25], State<8>>(permute(words))
    };
}

/// Four states. Only for processors with `avx2`.
#[expect(
    unsafe_code,
    reason = "calling code compiled for a feature that was found at run time; words as registers"
)]
pub(super) fn with_avx2(state: &mut State<4>) {
    #[target_feature(enable = "avx2")]
    fn parity(a: __m256i, b: __m256i, c: __m256i, d: __m256i, e: __m256i) -> __m256i {
        let (ab, cd) = (_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
        _mm256_xor_si256(_mm256_xor_si256(ab, cd), e)
    }
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(a: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<LEFT>(a), _mm256_srli_epi64::<RIGHT>(a))
    }
    #[target_feature(enable = "avx2")]
    fn choose(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        _mm256_xor_si256(a, _mm256_andnot_si256(b, c))
    }
    #[target_feature(enable = "avx2")]
    fn permute(words: [__m256i; 25]) -> [__m256i; 25] {
        rounds!(
            words,
            _mm256_xor_si256,
            parity,
            rotate,
            choose,
            _mm256_set1_epi64x
        )
    }
    // SAFETY: only called where the processor has the feature; four words are the bits of a register.
    *state = unsafe {
        let words = std::mem::transmute::<State<4>, [__m256i; 25]>(*state);
        std::mem::transmute::<[__m256i; 25], State<4>>(permute(words))
    };
}
