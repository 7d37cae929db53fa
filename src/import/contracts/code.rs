//! What the chain's own code says of sources: whether it names their metadata, and with which arguments it was made.

use super::hash::{HashKind, digest};
use super::trailer::{self, Trailer};
use crate::model::{B256, Bytes};
use crate::query::ContractCode;

/// What code says of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It names it by its hash.
    Same,
    /// Creation code names it beside others: it may be that of a contract which this one makes.
    Among,
    /// It names other metadata.
    Other,
    /// It names none, or is not known.
    Nothing,
}

/// Whether code names this metadata, and the arguments of its constructor, where both are known.
///
/// The code of a contract ends with its trailer; creation code has it behind the contract's code, and behind that the
/// arguments, which `takes` believes or not.
pub(super) fn judge(
    metadata: Option<&[u8]>,
    code: &ContractCode,
    takes: impl Fn(&[u8]) -> bool,
) -> (Word, Option<Bytes>) {
    let hashes = metadata.map(Hashes::new);
    let names = |trailer: &Trailer<'_>| {
        trailer.hash.map_or(Word::Nothing, |(kind, hash)| match &hashes {
            None => Word::Nothing,
            Some(hashes) if hashes.of(kind) == hash => Word::Same,
            Some(_) => Word::Other,
        })
    };
    let mut word = Word::Nothing;
    // The trailer behind which arguments stand, and whether it is certain that it is this contract's.
    let mut own: Option<Vec<u8>> = None;
    if let Some(runtime) = code.runtime.as_deref().filter(|code| !code.is_empty()) {
        if let Some(trailer) = trailer::at_end(runtime) {
            word = names(&trailer);
            own = Some(trailer.bytes.to_vec());
        }
    } else if let Some(init) = code.init.as_deref() {
        for (_, trailer) in trailer::within(init) {
            match names(&trailer) {
                Word::Same => {
                    word = Word::Same;
                    own = Some(trailer.bytes.to_vec());
                }
                Word::Other if word == Word::Nothing => word = Word::Other,
                Word::Other | Word::Among | Word::Nothing => {}
            }
        }
        if word == Word::Same && names_several(code) {
            word = Word::Among;
        }
    }
    let arguments = own.and_then(|own| {
        let init = code.init.as_ref()?;
        let end = find_last(init, &own)? + own.len();
        Some(init.slice(end..))
    });
    (word, arguments.filter(|arguments| takes(arguments)))
}

/// Whether nothing but creation code is known, and it names several metadata: the contract's own, and those of what it makes.
pub(super) fn names_several(code: &ContractCode) -> bool {
    let has_runtime = code.runtime.as_deref().is_some_and(|code| !code.is_empty());
    let Some(init) = code.init.as_deref().filter(|_| !has_runtime) else {
        return false;
    };
    let mut hashes = trailer::within(init).map(|(_, trailer)| trailer.hash);
    hashes
        .next()
        .is_some_and(|first| hashes.any(|hash| hash != first))
}

/// The hash by which a contract's code names its metadata.
pub(super) fn names_metadata(code: &ContractCode) -> Option<(HashKind, B256)> {
    match (code.runtime.as_deref(), code.init.as_deref()) {
        (Some(runtime), _) if !runtime.is_empty() => trailer::at_end(runtime)?.hash,
        (_, Some(init)) => trailer::within(init).last()?.1.hash,
        _ => None,
    }
}

/// The hashes of one metadata, each made when it is asked for.
struct Hashes<'a> {
    metadata: &'a [u8],
    made: [std::cell::OnceCell<B256>; 3],
}

impl<'a> Hashes<'a> {
    fn new(metadata: &'a [u8]) -> Self {
        Self {
            metadata,
            made: Default::default(),
        }
    }

    fn of(&self, kind: HashKind) -> B256 {
        let make = || digest(kind, self.metadata);
        let [ipfs, bzzr1, bzzr0] = &self.made;
        let made = match kind {
            HashKind::Ipfs => ipfs,
            HashKind::Bzzr1 => bzzr1,
            HashKind::Bzzr0 => bzzr0,
        };
        *made.get_or_init(make)
    }
}

/// Where `what` begins for the last time.
fn find_last(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes
        .windows(what.len().max(1))
        .rposition(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::super::trailer::of_solc as trailer;
    use super::*;

    fn code(runtime: Option<Vec<u8>>, init: Option<Vec<u8>>) -> ContractCode {
        ContractCode {
            runtime: runtime.map(Bytes::from),
            init: init.map(Bytes::from),
        }
    }

    #[test]
    fn code_names_its_metadata() {
        let (ours, other) = (trailer(b"{}"), trailer(b"{\"a\":1}"));
        let runtime = [b"\x60\x80".as_slice(), &ours].concat();
        let init = [b"\x60\x40\xf3".as_slice(), &runtime, &[9; 32]].concat();
        let arguments = Some(Bytes::from(vec![9; 32]));
        let all = |_: &[u8]| true;
        let known = [
            code(Some(runtime.clone()), Some(init.clone())),
            code(None, Some(init.clone())),
        ];
        for known in known {
            assert_eq!(judge(Some(b"{}"), &known, all), (Word::Same, arguments.clone()));
            assert_eq!(judge(Some(b"{ }"), &known, all).0, Word::Other);
            assert_eq!(judge(Some(b"{}"), &known, |_| false), (Word::Same, None));
        }
        // Without metadata the code's own trailer still says where the arguments begin.
        let known = code(Some(runtime), Some(init.clone()));
        assert_eq!(judge(None, &known, all), (Word::Nothing, arguments));
        assert_eq!(judge(None, &code(None, Some(init)), all), (Word::Nothing, None));
        // Made inside of a factory: other contracts' trailers stand in its code.
        let factory = [b"\x60".as_slice(), &other, &ours, &other].concat();
        let (word, rest) = judge(Some(b"{}"), &code(None, Some(factory)), all);
        assert_eq!((word, rest), (Word::Among, Some(Bytes::from(other))));
        // A loader's code names nothing, and neither does nothing at all.
        let nothing = (Word::Nothing, None);
        assert_eq!(
            judge(Some(b"{}"), &code(None, Some(vec![0x60; 40])), all),
            nothing
        );
        assert_eq!(judge(Some(b"{}"), &code(Some(vec![0xfe]), None), all), nothing);
        assert_eq!(judge(Some(b"{}"), &code(None, None), all), nothing);
    }
}
