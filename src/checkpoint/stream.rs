//! A checkpoint as a stream: a tar archive, compressed by zstd, with the manifest as its last file.
//!
//! All names begin with a directory that says the format's version, so that a newer one is told at the first file, and
//! so that unpacking it with other tools gives a directory that is a checkpoint.

use std::io::{Read, Write};

use tar::{Archive, Builder, EntryType, Header};

use super::files::hash_to;
use super::manifest::{FORMAT, other_version};
use super::name::Name;
use super::{CheckpointError, MANIFEST, Watcher};

/// Before the format's version in the names of a stream.
const ROOT: &str = "quarry-checkpoint-";
/// Tables are compressed already; this is for arrays.
const ZSTD_LEVEL: i32 = 1;
/// A manifest is not longer.
pub(super) const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// A stream that is written.
pub(super) struct Out<W: Write>(Builder<zstd::Encoder<'static, W>>);

impl<W: Write> Out<W> {
    /// Begins a stream.
    pub(super) fn begin(to: W) -> Result<Self, CheckpointError> {
        let mut encoder = zstd::Encoder::new(to, ZSTD_LEVEL).map_err(CheckpointError::Write)?;
        encoder.include_checksum(true).map_err(CheckpointError::Write)?;
        Ok(Self(Builder::new(encoder)))
    }

    fn header(&mut self, name: &str, length: u64) -> Result<(), CheckpointError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(length);
        header.set_mode(0o644);
        header
            .set_path(format!("{ROOT}{FORMAT}/{name}"))
            .map_err(CheckpointError::Write)?;
        header.set_cksum();
        self.write(header.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        self.0.get_mut().write_all(bytes).map_err(CheckpointError::Write)
    }

    /// Fills the last block of a file.
    fn pad(&mut self, length: u64) -> Result<(), CheckpointError> {
        let zeros = [0; 512];
        let over = (length % 512) as usize;
        match over {
            0 => Ok(()),
            over => self.write(zeros.get(over..).unwrap_or_default()),
        }
    }

    /// Adds a file; answers its hash and length.
    pub(super) fn file(
        &mut self,
        name: &Name,
        length: u64,
        from: &mut dyn Read,
        watcher: &dyn Watcher,
    ) -> Result<(String, u64), CheckpointError> {
        self.header(name.as_str(), length)?;
        let failed = |error| CheckpointError::io("read", name.as_str())(error);
        let written = hash_to(&mut from.take(length), |bytes| self.write(bytes), failed, watcher)?;
        if written.1 != length {
            let short = std::io::ErrorKind::UnexpectedEof.into();
            return Err(CheckpointError::io("read", name.as_str())(short));
        }
        self.pad(length)?;
        Ok(written)
    }

    /// Adds the manifest and ends the stream.
    pub(super) fn finish(mut self, manifest: &[u8]) -> Result<(), CheckpointError> {
        let length = manifest.len() as u64;
        self.header(MANIFEST, length)?;
        self.write(manifest)?;
        self.pad(length)?;
        let encoder = self.0.into_inner().map_err(CheckpointError::Write)?;
        let mut to = encoder.finish().map_err(CheckpointError::Write)?;
        to.flush().map_err(CheckpointError::Write)
    }
}

/// Reads a stream: hands every file to `each` with its name and answers the manifest.
pub(super) fn read(
    from: &str,
    mut stream: impl Read,
    watcher: &dyn Watcher,
    mut each: impl FnMut(&Name, &mut dyn Read) -> Result<(), CheckpointError>,
) -> Result<Vec<u8>, CheckpointError> {
    let broken = |error: std::io::Error| {
        CheckpointError::not_whole(from, format!("the stream breaks off or is none ({error})"))
    };
    let mut head = Vec::with_capacity(4);
    stream.by_ref().take(4).read_to_end(&mut head).map_err(broken)?;
    if !head.first_chunk().is_some_and(|head| begins_zstd(*head)) {
        return Err(broken(std::io::Error::other("it does not begin as zstd does")));
    }
    let decoder = zstd::Decoder::new(std::io::Cursor::new(head).chain(stream)).map_err(broken)?;
    let mut archive = Archive::new(decoder);
    let mut manifest = None;
    // As they are: headers that speak of the next file have no place in a checkpoint, and are read into memory whole else.
    for entry in archive.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        if watcher.stopped() {
            return Err(CheckpointError::Stopped);
        }
        let path = entry.path_bytes().into_owned();
        let text = String::from_utf8_lossy(&path).into_owned();
        let refused = |reason| CheckpointError::Name {
            from: from.to_owned(),
            name: text.escape_debug().to_string(),
            reason,
        };
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Symlink | EntryType::Link => return Err(refused("a link")),
            _ => return Err(refused("not a plain file")),
        }
        let rest = below_root(from, &text, refused)?;
        if manifest.is_some() {
            return Err(refused("behind the manifest"));
        }
        if rest == MANIFEST {
            let mut bytes = Vec::new();
            let length = entry.size();
            if length > MANIFEST_BYTES_MAX {
                return Err(CheckpointError::damaged(from, "its manifest is too long"));
            }
            entry.read_to_end(&mut bytes).map_err(broken)?;
            if bytes.len() as u64 != length {
                return Err(CheckpointError::not_whole(
                    from,
                    "the stream breaks off in its manifest",
                ));
            }
            manifest = Some(bytes);
        } else {
            let name = Name::parse(from, rest)?;
            each(&name, &mut entry)?;
        }
    }
    // To the last byte, so that zstd's own checksum is looked at.
    let mut rest = archive.into_inner();
    std::io::copy(&mut rest, &mut std::io::sink()).map_err(broken)?;
    manifest.ok_or_else(|| {
        CheckpointError::not_whole(
            from,
            format!("it has no {MANIFEST}, which comes last: the stream broke off"),
        )
    })
}

/// Whether a stream that begins with these bytes is of zstd's format (RFC 8878), or begins with a frame that is skipped. The
/// library reads formats of before 1.0 too, by decoders that nobody looks after; no checkpoint was ever in one.
fn begins_zstd(head: [u8; 4]) -> bool {
    matches!(u32::from_le_bytes(head), 0xfd2f_b528 | 0x184d_2a50..=0x184d_2a5f)
}

/// The name below the directory that all names of a stream begin with.
fn below_root<'a>(
    from: &str,
    text: &'a str,
    refused: impl Fn(&'static str) -> CheckpointError,
) -> Result<&'a str, CheckpointError> {
    if text.starts_with('/') {
        return Err(refused("an absolute path"));
    }
    let told = text.strip_prefix(ROOT).and_then(|rest| rest.split_once('/'));
    let (version, rest) = told.ok_or_else(|| refused("no file of a checkpoint"))?;
    match version.parse::<u32>() {
        Ok(FORMAT) => Ok(rest),
        Ok(found) => Err(other_version(from, "format", found, FORMAT)),
        Err(_) => Err(refused("no file of a checkpoint")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Watcher for Silent {
        fn progress(&self, _: u64, _: Option<u64>) {}

        fn stopped(&self) -> bool {
            false
        }
    }

    fn refusal(stream: &[u8]) -> String {
        let refused = read("stream", stream, &Silent, |_, _| Ok(()));
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_stream_begins_as_zstd_does() {
        let empty = zstd::encode_all(&[][..], 1).unwrap();
        let skipped = [&[0x5f, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7], empty.as_slice()].concat();
        for zstd in [empty.as_slice(), &skipped] {
            let said = refusal(zstd);
            assert!(said.contains("has no checkpoint.json"), "{said}");
        }
        // 0.1 and 0.7 of the format, and what is none.
        for other in [
            &b"\x1e\xb5\x2f\xfd    "[..],
            b"\x27\xb5\x2f\xfd    ",
            b"ustar",
            b"(",
            b"",
        ] {
            let said = refusal(other);
            assert!(said.contains("it does not begin as zstd does"), "{said}");
        }
    }
}
