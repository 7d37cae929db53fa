//! Whether what is imported can be of its contract: by the hash of its metadata, or by the code that it was compiled to.

use serde::Deserialize;

use super::code::{Word, judge, names_metadata};
use super::hash::digest;
use super::trailer;
use crate::model::{Address, B256, Bytes};
use crate::query::{ContractCode, QueryError, Reader};

/// What the chain tells of the address that something is imported for.
#[derive(Clone, Debug, Default)]
pub(super) struct OnChain {
    pub(super) contract: Address,
    pub(super) code: ContractCode,
    /// The block that made it is not final.
    pub(super) is_unfinal: bool,
    /// It sent transactions.
    pub(super) has_sent: bool,
}

impl OnChain {
    pub(super) fn read(reader: &Reader, contract: &Address) -> Result<Self, QueryError> {
        Ok(Self {
            contract: *contract,
            code: reader.contract_code(contract)?,
            is_unfinal: reader.is_created_unfinal(contract)?,
            has_sent: reader.has_sent(contract)?,
        })
    }

    /// Whether the store has code of the contract.
    pub(super) const fn has_code(&self) -> bool {
        self.code.init.is_some() || self.code.runtime.is_some()
    }

    /// The hash of the creation code that a reorg may take away.
    pub(super) fn unfinal_code(&self) -> Option<B256> {
        self.is_unfinal.then(|| self.code.creation_hash()).flatten()
    }

    /// Why there is no code, where that is certain. An address of which nothing is known may get code yet.
    pub(super) fn without_code(&self) -> Option<String> {
        let contract = self.contract;
        match &self.code.runtime {
            Some(runtime) if runtime.is_empty() => {
                Some(format!("`{contract}` has no code: its creation left none"))
            }
            // The sender of a transaction has none (EIP-3607).
            None if !self.has_code() && self.has_sent => Some(format!(
                "`{contract}` has no code: it is an account that sends transactions"
            )),
            _ => None,
        }
    }

    fn runtime(&self) -> Option<&[u8]> {
        self.code
            .runtime
            .as_ref()
            .map(AsRef::as_ref)
            .filter(|code: &&[u8]| !code.is_empty())
    }
}

/// How what is imported fits its contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Fit {
    /// The code names its metadata by its hash.
    Metadata(Creation),
    /// The code is what it was compiled to, but for hashes of metadata.
    Code(Creation),
    /// The code is another's: why that is certain.
    Other(String),
    /// There is nothing to hold against each other.
    #[default]
    Unknown,
}

/// What was run to make the contract, against what was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Creation {
    /// It begins with that; the rest is what the constructor was given.
    Matched(Bytes),
    /// It begins otherwise.
    Other,
    /// One of them is not there.
    Unknown,
}

/// What a compiler made of a contract; each may be left out.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    pub(super) metadata: Option<Vec<u8>>,
    pub(super) creation: Option<Compiled>,
    pub(super) runtime: Option<Compiled>,
    /// It is an interface or abstract: no contract has its code.
    pub(super) is_bodiless: bool,
}

impl Outputs {
    /// Takes the two codes as compilers and tools write them: hex, with names for libraries.
    pub(super) fn with_code(mut self, creation: Option<&str>, runtime: Option<&str>) -> Self {
        let is_empty = |code: &str| matches!(code, "" | "0x");
        self.is_bodiless = runtime.or(creation).is_some_and(is_empty);
        self.creation = creation.and_then(Compiled::creation);
        self.runtime = runtime.and_then(Compiled::runtime);
        self
    }

    /// Holds them against the chain; `name` is what messages call them.
    pub(super) fn fit(&self, name: &str, on_chain: &OnChain) -> Fit {
        if !on_chain.has_code() {
            return Fit::Unknown;
        }
        let metadata = self.metadata.as_deref();
        let (word, _) = judge(metadata, &on_chain.code, |_| false);
        let created = self.created(on_chain);
        let is_its_own = match (word, on_chain.runtime(), &created) {
            (Word::Same, Some(_), _) | (Word::Among, _, Creation::Matched(_)) => true,
            // Creation code names the metadata of contracts that it makes, too.
            (Word::Same, None, created) => *created != Creation::Other,
            _ => false,
        };
        if is_its_own {
            return Fit::Metadata(created);
        }
        let contract = on_chain.contract;
        if self.is_bodiless {
            return Fit::Other(format!(
                "{name} has no code (it is abstract or an interface), and `{contract}` has"
            ));
        }
        let fits = match (on_chain.runtime(), &self.runtime, &created) {
            (Some(runtime), Some(compiled), _) => Some(compiled.is_runtime(runtime)),
            (_, _, Creation::Matched(_)) => Some(true),
            (_, _, Creation::Other) => Some(false),
            (_, _, Creation::Unknown) => None,
        };
        match (fits, word, names_metadata(&on_chain.code), metadata) {
            (Some(true), ..) => Fit::Code(created),
            (Some(false), ..) => Fit::Other(format!(
                "the code of `{contract}` is not what {name} was compiled to"
            )),
            (None, Word::Other, Some((kind, theirs)), Some(metadata)) => Fit::Other(format!(
                "the code of `{contract}` names other metadata: {kind} {theirs:x}, and that of {name} is {:x}",
                digest(kind, metadata)
            )),
            (None, ..) => Fit::Unknown,
        }
    }

    fn created(&self, on_chain: &OnChain) -> Creation {
        match (&on_chain.code.init, &self.creation) {
            (Some(init), Some(compiled)) => match compiled.behind(init) {
                Some(at) => Creation::Matched(init.slice(at..)),
                None => Creation::Other,
            },
            _ => Creation::Unknown,
        }
    }
}

/// Code that a compiler made, with bytes that are filled in later.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compiled {
    bytes: Vec<u8>,
    /// Which bytes may be any: addresses of libraries, immutables, hashes of metadata.
    open: Vec<bool>,
}

/// Letters that stand for a library's address.
const PLACEHOLDER: usize = 40;
const PUSH20: u8 = 0x73;
const PUSH32: u8 = 0x7f;

impl Compiled {
    fn creation(text: &str) -> Option<Self> {
        let mut code = Self::parse(text)?;
        code.open_trailers();
        Some(code)
    }

    fn runtime(text: &str) -> Option<Self> {
        let mut code = Self::parse(text)?;
        code.open_trailers();
        // An immutable is pushed; until it is filled in it is zero.
        for at in 0..code.bytes.len() {
            let pushed = code.bytes.get(at..).unwrap_or_default();
            if let [PUSH32, rest @ ..] = pushed
                && rest.first_chunk::<32>() == Some(&[0; 32])
            {
                code.open(at + 1, 32);
            }
        }
        // A library begins with its own address.
        if let [PUSH20, rest @ ..] = code.bytes.as_slice()
            && rest.first_chunk::<20>() == Some(&[0; 20])
        {
            code.open(1, 20);
        }
        Some(code)
    }

    /// Hex in which `__` and 38 more letters stand for 20 bytes.
    fn parse(text: &str) -> Option<Self> {
        let mut text = text.strip_prefix("0x").unwrap_or(text).as_bytes();
        let (mut bytes, mut open) = (Vec::new(), Vec::new());
        while !text.is_empty() {
            if text.starts_with(b"__") {
                text = text.get(PLACEHOLDER..)?;
                bytes.extend_from_slice(&[0; PLACEHOLDER / 2]);
                open.extend_from_slice(&[true; PLACEHOLDER / 2]);
                continue;
            }
            let (digits, rest) = text.split_first_chunk::<2>()?;
            let [byte] = const_hex::decode_to_array::<_, 1>(digits).ok()?;
            bytes.push(byte);
            open.push(false);
            text = rest;
        }
        (!bytes.is_empty()).then_some(Self { bytes, open })
    }

    fn open(&mut self, from: usize, len: usize) {
        if let Some(open) = self.open.get_mut(from..from + len) {
            open.fill(true);
        }
    }

    fn open_trailers(&mut self) {
        let found: Vec<_> = trailer::within(&self.bytes)
            .map(|(start, trailer)| (start, trailer.bytes.len()))
            .collect();
        for (start, len) in found {
            self.open(start, len);
        }
    }

    fn begins(&self, code: &[u8], len: usize) -> bool {
        code.len() >= len
            && self
                .bytes
                .iter()
                .zip(&self.open)
                .zip(code)
                .take(len)
                .all(|((ours, open), theirs)| *open || ours == theirs)
    }

    /// Whether this is the code of a contract.
    fn is_runtime(&self, code: &[u8]) -> bool {
        let body = |code: &[u8]| code.len() - trailer::at_end(code).map_or(0, |trailer| trailer.bytes.len());
        let (ours, theirs) = (body(&self.bytes), body(code));
        // Vyper appends immutables, and its code has no trailer.
        let bare = ours == self.bytes.len() && theirs == code.len();
        let fits = match theirs.checked_sub(ours) {
            Some(0) => true,
            Some(more) => bare && more.is_multiple_of(32),
            None => false,
        };
        ours > 0 && fits && self.begins(code, ours)
    }

    /// Where what follows this code begins in creation code.
    fn behind(&self, init: &[u8]) -> Option<usize> {
        self.begins(init, self.bytes.len()).then_some(self.bytes.len())
    }
}

/// Code as tools write it: hex alone, or an object that has it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum CodeText {
    /// Hex.
    Plain(String),
    /// With what else is told of it.
    Within {
        /// Hex.
        object: String,
    },
    /// Anything else.
    None(serde::de::IgnoredAny),
}

impl CodeText {
    pub(super) fn hex(&self) -> Option<&str> {
        match self {
            Self::Plain(hex) | Self::Within { object: hex } => Some(hex),
            Self::None(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::HashKind;
    use super::super::trailer::of_solc as trailer;
    use super::*;

    fn on_chain(runtime: Option<&[u8]>, init: Option<&[u8]>) -> OnChain {
        OnChain {
            contract: Address::repeat_byte(0xcc),
            code: ContractCode {
                runtime: runtime.map(|code| code.to_vec().into()),
                init: init.map(|code| code.to_vec().into()),
            },
            ..OnChain::default()
        }
    }

    fn compiled(metadata: &[u8], creation: Option<&[u8]>, runtime: Option<&[u8]>) -> Outputs {
        let hex = |code: Option<&[u8]>| code.map(const_hex::encode);
        let (creation, runtime) = (hex(creation), hex(runtime));
        Outputs {
            metadata: Some(metadata.to_vec()),
            ..Outputs::default()
        }
        .with_code(creation.as_deref(), runtime.as_deref())
    }

    #[test]
    fn code_fits_but_for_hashes_and_what_is_filled_in() {
        let runtime = |metadata: &[u8], immutable: u8| {
            let head = [b"\x60\x80\x7f".as_slice(), &[immutable; 32], b"\x50"].concat();
            [head.as_slice(), &trailer(metadata)].concat()
        };
        let init = |metadata: &[u8]| [b"\x60\x40\x39\xf3".as_slice(), &runtime(metadata, 0)].concat();
        let arguments = [9; 32];
        let sent = [init(b"{}").as_slice(), &arguments].concat();
        let known = on_chain(Some(&runtime(b"{}", 7)), Some(&sent));
        let fit = |outputs: &Outputs, known: &OnChain| outputs.fit("`A`", known);
        let matched = Fit::Code(Creation::Matched(arguments.to_vec().into()));
        let other: &[u8] = b"{\"a\":1}";
        // The same sources with another comment.
        let whole = compiled(other, Some(&init(other)), Some(&runtime(other, 0)));
        assert_eq!(fit(&whole, &known), matched);
        assert_eq!(fit(&whole, &on_chain(None, Some(&sent))), matched);
        assert_eq!(fit(&whole, &OnChain::default()), Fit::Unknown);
        let only_runtime = compiled(other, None, Some(&runtime(other, 0)));
        assert_eq!(fit(&only_runtime, &known), Fit::Code(Creation::Unknown));
        let only_creation = compiled(other, Some(&init(other)), None);
        assert_eq!(fit(&only_creation, &known), matched);
        assert_eq!(
            fit(&compiled(b"{}", None, None), &known),
            Fit::Metadata(Creation::Unknown)
        );
        // Another contract, by each of what is known of it.
        let mut changed = runtime(other, 0);
        changed[1] ^= 1;
        for outputs in [
            compiled(other, None, Some(&changed)),
            compiled(other, Some(&init(other)), Some(&changed)),
            compiled(other, Some(&changed), None),
            compiled(other, None, Some(&changed[1..])),
        ] {
            let Fit::Other(why) = fit(&outputs, &known) else {
                panic!("it fits")
            };
            assert!(why.contains("is not what `A` was compiled to"), "{why}");
        }
        let Fit::Other(why) = fit(&compiled(other, None, None), &known) else {
            panic!("it fits")
        };
        let hashes = [b"{}".as_slice(), other].map(|text| const_hex::encode(digest(HashKind::Ipfs, text)));
        assert!(
            why.contains("other metadata: ipfs ") && hashes.iter().all(|hash| why.contains(hash)),
            "{why}"
        );
        let Fit::Other(why) = fit(&compiled(other, Some(b""), Some(b"")), &known) else {
            panic!("it fits")
        };
        assert!(why.contains("abstract or an interface"), "{why}");
        // Code without metadata says nothing against metadata.
        let bare = on_chain(Some(b"\x60\x2a\x00"), Some(b"\x60\x2a\x60\x00\xf3"));
        assert_eq!(fit(&compiled(other, None, None), &bare), Fit::Unknown);
        assert_eq!(
            fit(&compiled(other, None, Some(b"\x60\x2a\x00")), &bare),
            Fit::Code(Creation::Unknown)
        );
    }

    /// Creation code alone does not tell whose the hashes in it are, unless it begins with what was compiled.
    #[test]
    fn a_factory_is_not_its_child() {
        let (child, factory): (&[u8], &[u8]) = (b"{\"child\":1}", b"{\"factory\":1}");
        let made = [b"\x60\x01".as_slice(), &trailer(child)].concat();
        let making = [b"\x60\x02".as_slice(), &made, b"\x60\x03", &trailer(factory)].concat();
        let arguments = [9; 32];
        let known = on_chain(None, Some(&[making.as_slice(), &arguments].concat()));
        let fit =
            |metadata: &[u8], creation: Option<&[u8]>| compiled(metadata, creation, None).fit("`A`", &known);
        let matched = Fit::Metadata(Creation::Matched(arguments.to_vec().into()));
        assert_eq!(fit(factory, Some(&making)), matched);
        let Fit::Other(why) = fit(child, Some(&made)) else {
            panic!("a factory is its child")
        };
        assert!(why.contains("is not what `A` was compiled to"), "{why}");
        // Without code nothing tells which of the two it is.
        assert_eq!(fit(factory, None), Fit::Unknown);
        assert_eq!(fit(child, None), Fit::Unknown);
        // The only hash may be a child's, too.
        let unnamed = on_chain(None, Some(&[b"\x60\x02".as_slice(), &made].concat()));
        assert!(matches!(
            compiled(child, Some(&made), None).fit("`A`", &unnamed),
            Fit::Other(_)
        ));
        let alone = compiled(child, None, None).fit("`A`", &unnamed);
        assert_eq!(alone, Fit::Metadata(Creation::Unknown));
    }

    #[test]
    fn names_of_libraries_stand_for_addresses() {
        let text = format!("0x73__${}$__ff00", "0".repeat(34));
        let code = Compiled::parse(&text).unwrap();
        let on_chain = [b"\x73".as_slice(), &[5; 20], b"\xff\x00"].concat();
        assert!(code.is_runtime(&on_chain) && !code.is_runtime(&on_chain[1..]));
        let library = format!("73{}30", "00".repeat(20));
        let own = [b"\x73".as_slice(), &[6; 20], b"\x30"].concat();
        assert!(Compiled::runtime(&library).unwrap().is_runtime(&own));
        for bad in ["", "0x", "0", "zz", "__short", "0x6__"] {
            assert_eq!(Compiled::parse(bad), None, "{bad}");
        }
        // Immutables behind code without a trailer, a word each.
        let vyper = Compiled::runtime("600160").unwrap();
        assert!(vyper.is_runtime(&[b"\x60\x01\x60".as_slice(), &[1; 64]].concat()));
        assert!(!vyper.is_runtime(&[b"\x60\x01\x60".as_slice(), &[1; 63]].concat()));
        assert!(!vyper.is_runtime(b"\x60\x01"));
    }

    #[test]
    fn addresses_without_code() {
        let sender = OnChain {
            has_sent: true,
            ..OnChain::default()
        };
        assert!(sender.without_code().unwrap().contains("sends transactions"));
        assert!(OnChain::default().without_code().is_none());
        let empty = on_chain(Some(b""), Some(b"\x60"));
        assert!(empty.without_code().unwrap().contains("left none"));
        let contract = OnChain {
            has_sent: true,
            ..on_chain(None, Some(b"\x60"))
        };
        assert!(contract.without_code().is_none());
    }
}
