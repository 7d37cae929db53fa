//! What is believed of a contract's sources, by claim and by code.

use super::*;

const METADATA: &str = r#"{"compiler":{"version":"0.8.1"},"language":"Solidity","output":{"abi":[]},
    "settings":{"compilationTarget":{"A.sol":"A"}},"sources":{"A.sol":{}}}"#;

fn candidate(claim: Claim) -> Candidate {
    let metadata = Metadata::parse(METADATA).unwrap();
    let text = "// SPDX-License-Identifier: MIT\ncontract A {}".to_owned();
    Candidate {
        facts: metadata.facts(),
        abi: metadata.abi().unwrap(),
        metadata: Some(METADATA.into()),
        sources: vec![("A.sol".to_owned(), B256::repeat_byte(1), text)],
        claim,
        told_arguments: None,
    }
}

fn code_naming(metadata: &[u8]) -> ContractCode {
    let mut trailer = b"\xa1\x65bzzr1\x58\x20".to_vec();
    trailer.extend_from_slice(hash::digest(hash::HashKind::Bzzr1, metadata).as_slice());
    let length = trailer.len() as u16;
    trailer.extend_from_slice(&length.to_be_bytes());
    let runtime = [b"\x60\x80".as_slice(), &trailer].concat();
    ContractCode {
        init: Some([b"\x60\x40".as_slice(), &runtime].concat().into()),
        runtime: Some(runtime.into()),
    }
}

#[test]
fn matches_follow_from_claims_and_code() {
    let (ours, other, none) = (
        code_naming(METADATA.as_bytes()),
        code_naming(b"{}"),
        ContractCode::default(),
    );
    let of = |claim, code| {
        settle(candidate(claim), code).map(|settled| (settled.facts.match_kind, settled.facts.checked))
    };
    assert_eq!(of(Claim::Full, &ours), Ok((MatchKind::Full, true)));
    assert_eq!(of(Claim::Full, &none), Ok((MatchKind::Full, false)));
    assert!(
        of(Claim::Full, &other)
            .unwrap_err()
            .contains("names other metadata")
    );
    assert_eq!(of(Claim::Partial, &ours), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::Partial, &other), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::None, &ours), Ok((MatchKind::Full, true)));
    assert_eq!(of(Claim::None, &other), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::None, &none), Ok((MatchKind::Partial, false)));
    // Code that names no metadata cannot match it fully, whatever the repository says.
    let bare = ContractCode {
        init: Some(vec![0x60, 0x2a, 0x60, 0, 0x52].into()),
        runtime: Some(vec![0x60, 0x2a, 0x60, 0, 0x52].into()),
    };
    assert_eq!(of(Claim::Full, &bare), Ok((MatchKind::Partial, true)));
}

#[test]
fn facts_are_completed_from_sources_and_code() {
    let settled = settle(candidate(Claim::None), &code_naming(METADATA.as_bytes())).unwrap();
    assert_eq!(settled.facts.license.as_deref(), Some("MIT"));
    assert_eq!(settled.facts.constructor_arguments, Some(Bytes::new()));
    // A repository's own word on arguments counts where the input ends with it.
    let with_arguments = |told: &[u8], init: &[u8]| {
        let abi =
            r#"[{"type":"constructor","stateMutability":"payable","inputs":[{"name":"a","type":"uint8"}]}]"#;
        let candidate = Candidate {
            abi: Some(Abi::parse(abi).unwrap()),
            told_arguments: Some(told.to_vec()),
            ..candidate(Claim::Partial)
        };
        let code = ContractCode {
            init: Some(init.to_vec().into()),
            runtime: None,
        };
        settle(candidate, &code).unwrap().facts.constructor_arguments
    };
    let argument = [7; 32];
    let init = [b"\x60\x80".as_slice(), &argument].concat();
    assert_eq!(with_arguments(&argument, &init), Some(argument.to_vec().into()));
    assert_eq!(with_arguments(&argument, b"\x60\x80"), None);
    assert_eq!(with_arguments(&[7; 31], &init), None);
    // A main file that is not there is none.
    let mut without = candidate(Claim::Full);
    without.facts.main = Some("B.sol".to_owned());
    assert_eq!(
        settle(without, &ContractCode::default()).unwrap().facts.main,
        None
    );
    let nothing = Candidate::default();
    assert!(settle(nothing, &ContractCode::default()).is_err());
}

#[test]
fn less_never_replaces_more() {
    let worth = [
        Worth::Abi,
        Worth::Sources(MatchKind::Partial),
        Worth::Sources(MatchKind::Full),
    ];
    assert!(worth.is_sorted());
}
