//! Rows of imported contracts.
//!
//! ```text
//! 10 | contract 20 -> format 1 or 2, match 1, bits 1 (checked, arguments, optimizer known, on, runs, stated),
//!                     [runs varint], [arguments], name, language, compiler, EVM, license, main file,
//!                     in format 2 settings (each 0, or 1 and a text),
//!                     sources: count varint, each a path and a hash 32
//! 11 | contract 20 -> the ABI, JSON text
//! 12 | contract 20 -> functions: count varint, each selector 4 and text; errors: count varint, each selector 4, name,
//!                     inputs: count varint, each a type and a name
//! 13 | hash 32     -> the text of a source
//! 14 | contract 20 -> hash 32 of the creation code that all of it was held against, while that was not in a final block
//! ```

use super::super::Corrupt;
use super::super::bytes::{Reader, put_varint};
use crate::codec::beside::{put_optional_text, put_text, read_optional_text, read_text};
use crate::model::{Address, B256, Bytes, ContractFacts, ContractNames, CustomError, MatchKind};

const FACTS: u8 = 0x10;
const ABI: u8 = 0x11;
const NAMES: u8 = 0x12;
const SOURCE: u8 = 0x13;
const UNFINAL: u8 = 0x14;

/// Version of a row of facts.
const FORMAT: u8 = 2;
/// The version before there were settings.
const WITHOUT_SETTINGS: u8 = 1;

fn key<const N: usize, const LEN: usize>(kind: u8, of: &[u8; N]) -> [u8; LEN] {
    let mut key = [0; LEN];
    if let Some((first, rest)) = key.split_first_mut() {
        *first = kind;
        rest.copy_from_slice(of);
    }
    key
}

/// The key of a contract's facts.
#[must_use]
pub fn facts_key(contract: &Address) -> [u8; 21] {
    key(FACTS, &contract.0.0)
}

/// The key of a contract's ABI.
#[must_use]
pub fn abi_key(contract: &Address) -> [u8; 21] {
    key(ABI, &contract.0.0)
}

/// The key of the names in a contract's ABI.
#[must_use]
pub fn names_key(contract: &Address) -> [u8; 21] {
    key(NAMES, &contract.0.0)
}

/// What lies around all names.
#[must_use]
pub const fn names_range() -> ([u8; 1], [u8; 22]) {
    let mut end = [0xff; 22];
    end[0] = NAMES;
    ([NAMES], end)
}

/// The key of a source's text.
#[must_use]
pub fn source_key(hash: &B256) -> [u8; 33] {
    key(SOURCE, &hash.0)
}

/// The key of the hash of a contract's creation code that a reorg may take away.
#[must_use]
pub fn unfinal_key(contract: &Address) -> [u8; 21] {
    key(UNFINAL, &contract.0.0)
}

/// Reads the hash of creation code.
pub fn decode_code_hash(bytes: &[u8]) -> Result<B256, Corrupt> {
    B256::try_from(bytes).map_err(|_| Corrupt("hash of creation code"))
}

/// Reads a text that is a whole row.
pub fn decode_whole_text(bytes: &[u8]) -> Result<String, Corrupt> {
    let text = std::str::from_utf8(bytes).map_err(|_| Corrupt("text"))?;
    Ok(text.to_owned())
}

/// Facts as a row.
#[must_use]
pub fn encode_facts(facts: &ContractFacts) -> Vec<u8> {
    let bits = [
        facts.checked,
        facts.constructor_arguments.is_some(),
        facts.optimizer.is_some(),
        facts.optimizer == Some(true),
        facts.runs.is_some(),
        facts.stated,
    ];
    let bits = bits
        .iter()
        .enumerate()
        .fold(0, |bits, (at, &set)| bits | u8::from(set) << at);
    let mut out = vec![FORMAT, facts.match_kind as u8, bits];
    if let Some(runs) = facts.runs {
        put_varint(&mut out, runs);
    }
    if let Some(arguments) = &facts.constructor_arguments {
        put_varint(&mut out, arguments.len() as u64);
        out.extend_from_slice(arguments);
    }
    for text in [
        &facts.name,
        &facts.language,
        &facts.compiler_version,
        &facts.evm_version,
        &facts.license,
        &facts.main,
        &facts.settings,
    ] {
        put_optional_text(&mut out, text.as_deref());
    }
    put_varint(&mut out, facts.sources.len() as u64);
    for (path, hash) in &facts.sources {
        put_text(&mut out, path);
        out.extend_from_slice(hash.as_slice());
    }
    out
}

/// Reads facts.
pub fn decode_facts(bytes: &[u8]) -> Result<ContractFacts, Corrupt> {
    let mut reader = Reader::new(bytes, "facts of a contract");
    let has_settings = match reader.byte()? {
        FORMAT => true,
        WITHOUT_SETTINGS => false,
        _ => return Err(reader.corrupt()),
    };
    let match_kind = MatchKind::from_code(reader.byte()?).ok_or(Corrupt("kind of a match"))?;
    let bits = reader.byte()?;
    if bits > 63 {
        return Err(reader.corrupt());
    }
    let has = |at: u8| bits & 1 << at != 0;
    let runs = has(4).then(|| reader.varint()).transpose()?;
    let constructor_arguments = if has(1) {
        let len = reader.varint_usize()?;
        Some(Bytes::copy_from_slice(reader.take(len)?))
    } else {
        None
    };
    let mut facts = ContractFacts {
        match_kind,
        checked: has(0),
        stated: has(5),
        name: read_optional_text(&mut reader)?,
        language: read_optional_text(&mut reader)?,
        compiler_version: read_optional_text(&mut reader)?,
        optimizer: has(2).then_some(has(3)),
        runs,
        evm_version: read_optional_text(&mut reader)?,
        license: read_optional_text(&mut reader)?,
        main: read_optional_text(&mut reader)?,
        settings: if has_settings {
            read_optional_text(&mut reader)?
        } else {
            None
        },
        constructor_arguments,
        sources: Vec::new(),
    };
    for _ in 0..reader.varint()? {
        let path = read_text(&mut reader)?;
        facts.sources.push((path, B256::from(reader.array::<32>()?)));
    }
    reader.end()?;
    Ok(facts)
}

/// Names as a row.
#[must_use]
pub fn encode_names(names: &ContractNames) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, names.functions.len() as u64);
    for (selector, text) in &names.functions {
        out.extend_from_slice(selector);
        put_text(&mut out, text);
    }
    put_varint(&mut out, names.errors.len() as u64);
    for error in &names.errors {
        out.extend_from_slice(&error.selector);
        put_text(&mut out, &error.name);
        put_varint(&mut out, error.inputs.len() as u64);
        for (kind, name) in &error.inputs {
            put_text(&mut out, kind);
            put_text(&mut out, name);
        }
    }
    out
}

/// Reads names.
pub fn decode_names(bytes: &[u8]) -> Result<ContractNames, Corrupt> {
    let mut reader = Reader::new(bytes, "names of a contract");
    let mut names = ContractNames::default();
    for _ in 0..reader.varint()? {
        let selector = reader.array::<4>()?;
        names.functions.push((selector, read_text(&mut reader)?));
    }
    for _ in 0..reader.varint()? {
        let mut error = CustomError {
            selector: reader.array::<4>()?,
            name: read_text(&mut reader)?,
            inputs: Vec::new(),
        };
        for _ in 0..reader.varint()? {
            let kind = read_text(&mut reader)?;
            error.inputs.push((kind, read_text(&mut reader)?));
        }
        names.errors.push(error);
    }
    reader.end()?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_every_cut_is_corrupt() {
        let facts = ContractFacts {
            match_kind: MatchKind::Full,
            checked: true,
            stated: false,
            name: Some("Coin".to_owned()),
            language: Some("Solidity".to_owned()),
            compiler_version: None,
            optimizer: Some(true),
            runs: Some(200),
            evm_version: Some("prague".to_owned()),
            license: None,
            main: Some("contracts/Coin.sol".to_owned()),
            settings: Some(r#"{"viaIR":true}"#.to_owned()),
            constructor_arguments: Some(Bytes::from(vec![1, 2])),
            sources: vec![("caf\u{e9}.sol".to_owned(), B256::repeat_byte(3))],
        };
        let none = ContractFacts::default();
        let off = ContractFacts {
            optimizer: Some(false),
            ..ContractFacts::default()
        };
        let stated = ContractFacts {
            stated: true,
            ..facts.clone()
        };
        for facts in [&facts, &none, &off, &stated] {
            let bytes = encode_facts(facts);
            assert_eq!(decode_facts(&bytes).as_ref(), Ok(facts));
            for end in 0..bytes.len() {
                assert!(decode_facts(&bytes[..end]).is_err(), "{end}");
            }
        }
        // A row from before there were settings.
        let old = [&[1, 1, 0][..], &[0; 6], &[0]].concat();
        assert_eq!(decode_facts(&old), Ok(none));
        let hash = B256::repeat_byte(7);
        assert_eq!(decode_code_hash(hash.as_slice()), Ok(hash));
        assert!(decode_code_hash(&hash[1..]).is_err());
        let mut names = ContractNames {
            functions: vec![([9; 4], "b()".to_owned()), ([1; 4], "a(uint256 x)".to_owned())],
            errors: vec![CustomError {
                selector: [4; 4],
                name: "Bad".to_owned(),
                inputs: vec![("uint256".to_owned(), String::new())],
            }],
        };
        names.sort();
        assert_eq!(names.function([9; 4]), Some("b()"));
        assert_eq!(names.function([2; 4]), None);
        let bytes = encode_names(&names);
        assert_eq!(decode_names(&bytes).as_ref(), Ok(&names));
        for end in 0..bytes.len() {
            assert!(decode_names(&bytes[..end]).is_err(), "{end}");
        }
    }
}
