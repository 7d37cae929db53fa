//! The one place where a file is mapped into memory.

use std::fs::File;

use memmap2::Mmap;

/// Maps `file` for reading.
///
/// The caller keeps two promises that make this sound: bytes that were handed to readers are never
/// written again (the arrays only grow), and the file is never cut while a map of it lives.
#[expect(
    unsafe_code,
    reason = "mapping a file is unsafe by signature; the promises above are kept by `flat`"
)]
pub(super) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: see above. Bytes past the handed-out length may change while mapped, and are never read.
    unsafe { Mmap::map(file) }
}
