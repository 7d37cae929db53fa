//! What is believed of a contract's sources, by claim and by code.

use super::fit::Creation;
use super::*;
use crate::model::{Bytes, MatchKind};
use crate::query::ContractCode;

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
        fit: Fit::Unknown,
        told_arguments: None,
    }
}

fn with_code(code: ContractCode) -> OnChain {
    OnChain {
        code,
        ..OnChain::default()
    }
}

fn code_naming(metadata: &[u8]) -> OnChain {
    let mut trailer = b"\xa1\x65bzzr1\x58\x20".to_vec();
    trailer.extend_from_slice(hash::digest(hash::HashKind::Bzzr1, metadata).as_slice());
    let length = trailer.len() as u16;
    trailer.extend_from_slice(&length.to_be_bytes());
    let runtime = [b"\x60\x80".as_slice(), &trailer].concat();
    with_code(ContractCode {
        init: Some([b"\x60\x40".as_slice(), &runtime].concat().into()),
        runtime: Some(runtime.into()),
    })
}

#[test]
fn matches_follow_from_claims_and_code() {
    let (ours, other, none) = (
        code_naming(METADATA.as_bytes()),
        code_naming(b"{}"),
        OnChain::default(),
    );
    let of = |claim, code| {
        settle(candidate(claim), code).map(|settled| (settled.facts.match_kind, settled.facts.checked))
    };
    assert_eq!(of(Claim::Full, &ours), Ok((MatchKind::Full, true)));
    assert_eq!(of(Claim::Full, &none), Ok((MatchKind::Full, false)));
    assert!(
        of(Claim::Full, &other)
            .unwrap_err()
            .reason
            .contains("names other metadata")
    );
    assert_eq!(of(Claim::Partial, &ours), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::Partial, &other), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::None, &ours), Ok((MatchKind::Full, true)));
    assert_eq!(of(Claim::None, &other), Ok((MatchKind::Partial, true)));
    assert_eq!(of(Claim::None, &none), Ok((MatchKind::Partial, false)));
    // Code that names no metadata cannot match it fully, whatever the repository says.
    let bare = with_code(ContractCode {
        init: Some(vec![0x60, 0x2a, 0x60, 0, 0x52].into()),
        runtime: Some(vec![0x60, 0x2a, 0x60, 0, 0x52].into()),
    });
    assert_eq!(of(Claim::Full, &bare), Ok((MatchKind::Partial, true)));
    // Whether or not there are traces.
    let bare = deployed(&[0x60, 0x2a, 0x60, 0, 0x52]);
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
        let code = with_code(ContractCode {
            init: Some(init.to_vec().into()),
            runtime: None,
        });
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
    assert_eq!(settle(without, &OnChain::default()).unwrap().facts.main, None);
    let nothing = Candidate::default();
    assert!(settle(nothing, &OnChain::default()).is_err());
}

#[test]
fn less_never_replaces_more() {
    let worth = [
        Worth::Abi,
        Worth::Stated,
        Worth::Sources(MatchKind::Partial),
        Worth::Sources(MatchKind::Full),
    ];
    assert!(worth.is_sorted());
    // What was claimed before there was code gives way to what matches it partially, and to nothing less.
    let claimed = settle(candidate(Claim::Full), &OnChain::default()).unwrap().facts;
    let (none, ours) = (OnChain::default(), code_naming(METADATA.as_bytes()));
    assert_eq!(Worth::of_known(&claimed, &none), Worth::Sources(MatchKind::Full));
    assert_eq!(
        Worth::of_known(&claimed, &ours),
        Worth::Sources(MatchKind::Partial)
    );
    let stated = settle(candidate(Claim::File), &OnChain::default()).unwrap().facts;
    assert_eq!(Worth::of_known(&stated, &ours), Worth::Stated);
}

#[test]
fn what_cannot_be_of_the_contract_is_refused() {
    let refused = |candidate: Candidate, on_chain: &OnChain| settle(candidate, on_chain).unwrap_err();
    let sender = OnChain {
        has_sent: true,
        ..OnChain::default()
    };
    for claim in [Claim::Full, Claim::Partial, Claim::None, Claim::File] {
        let said = refused(candidate(claim), &sender);
        assert!(
            said.reason.contains("sends transactions") && said.reason.contains("sources of `A`"),
            "{said:?}"
        );
        assert_eq!(said.contradicted, Contradicted::Everything);
    }
    let abi = Candidate {
        abi: candidate(Claim::File).abi,
        ..Candidate::default()
    };
    assert!(refused(abi, &sender).reason.ends_with("the import is an ABI"));
    // A clone's code is nobody's sources; an ABI says nothing of code.
    let target = Address::repeat_byte(0xbe);
    let clone = [
        const_hex::decode("363d3d373d3d3d363d73").unwrap(),
        target.to_vec(),
        const_hex::decode("5af43d82803e903d91602b57fd5bf3").unwrap(),
    ]
    .concat();
    let clone = with_code(ContractCode {
        init: Some([&[0x60; 10], clone.as_slice()].concat().into()),
        runtime: Some(clone.into()),
    });
    for claim in [Claim::Full, Claim::Partial, Claim::None, Claim::File] {
        let said = refused(candidate(claim), &clone);
        assert!(
            said.reason
                .contains(&format!("a minimal proxy (EIP-1167) of `{target}`")),
            "{said:?}"
        );
        let expected = vec![("A.sol".to_owned(), B256::repeat_byte(1))];
        assert_eq!(
            said.contradicted,
            Contradicted::Sources(Some("A".to_owned()), expected)
        );
    }
    let abi = Candidate {
        abi: candidate(Claim::File).abi,
        ..Candidate::default()
    };
    assert!(settle(abi, &clone).is_ok());
    // Sources without an ABI: C1 and C2 would not agree.
    let without = Candidate {
        abi: None,
        ..candidate(Claim::Full)
    };
    let said = refused(without, &code_naming(METADATA.as_bytes()));
    assert!(said.reason.contains("without an ABI"), "{said:?}");
    assert_eq!(said.contradicted, Contradicted::Nothing);
}

#[test]
fn arguments_follow_creation_code_that_matched() {
    let ours = code_naming(METADATA.as_bytes());
    let other = code_naming(b"{}");
    let of = |claim, fit, code: &OnChain| {
        let candidate = Candidate {
            fit,
            ..candidate(claim)
        };
        let facts = settle(candidate, code).unwrap().facts;
        (facts.constructor_arguments, facts.stated)
    };
    let none = Some(Bytes::new());
    assert_eq!(of(Claim::None, Fit::Unknown, &ours), (none.clone(), false));
    assert_eq!(
        of(Claim::File, Fit::Metadata(Creation::Unknown), &ours),
        (none.clone(), false)
    );
    assert_eq!(of(Claim::Partial, Fit::Unknown, &other), (none, false));
    // Nothing says that the creation is theirs.
    assert_eq!(of(Claim::None, Fit::Unknown, &other), (None, true));
    assert_eq!(of(Claim::File, Fit::Unknown, &other), (None, true));
    assert_eq!(of(Claim::File, Fit::Code(Creation::Other), &other), (None, false));
    let rest = Bytes::from_static(b"rest");
    let matched = Fit::Code(Creation::Matched(rest.clone()));
    assert_eq!(of(Claim::File, matched, &other), (Some(rest.clone()), false));
    // Also where another contract's code stands behind the own one.
    let matched = Fit::Metadata(Creation::Matched(rest.clone()));
    assert_eq!(of(Claim::File, matched, &ours), (Some(rest), false));
}

/// A compiler puts the code of what a constructor makes behind the trailer of the contract's own.
#[test]
fn code_behind_the_own_one_is_no_argument() {
    let abi =
        r#"[{"type":"constructor","stateMutability":"payable","inputs":[{"name":"x","type":"string"}]}]"#;
    let mut given = [[0; 32], [0; 32], [b'x'; 32]];
    (given[0][31], given[1][31]) = (32, 32);
    let given = given.concat();
    let of = |behind: &[u8], told: Option<&Vec<u8>>| {
        let mut on_chain = code_naming(METADATA.as_bytes());
        let init = on_chain.code.init.unwrap();
        on_chain.code.init = Some([init.as_ref(), behind].concat().into());
        let candidate = Candidate {
            abi: Some(Abi::parse(abi).unwrap()),
            told_arguments: told.cloned(),
            ..candidate(Claim::Full)
        };
        let facts = settle(candidate, &on_chain).unwrap().facts;
        assert_eq!(facts.match_kind, MatchKind::Full);
        facts.constructor_arguments
    };
    let arguments = Some(Bytes::from(given.clone()));
    assert_eq!(of(&given, None), arguments);
    // With a trailer that names a hash, and without one.
    let made = [[0x60; 43].as_slice(), &trailer::of_solc(b"{}")].concat();
    assert_eq!(made.len() % 32, 0);
    for made in [made, vec![0x60; 96]] {
        let tail = [made.as_slice(), &given].concat();
        assert_eq!(of(&tail, None), None);
        assert_eq!(of(&tail, Some(&given)), arguments);
    }
}

/// Build information of a factory and its child, and the factory's creation code.
pub(super) struct Built {
    pub(super) input: serde_json::Value,
    pub(super) output: serde_json::Value,
    pub(super) factory: Vec<u8>,
}

/// `with_code` leaves the compiled code out or not.
pub(super) fn built(with_code: bool) -> Built {
    let metadata = |name: &str| {
        format!(
            r#"{{"compiler":{{"version":"0.8.1"}},"language":"Solidity","output":{{"abi":[]}},
                "settings":{{"compilationTarget":{{"F.sol":"{name}"}}}},"sources":{{"F.sol":{{}}}}}}"#
        )
    };
    let (child, factory) = (metadata("Child"), metadata("Factory"));
    let made = [b"\x60\x01".as_slice(), &trailer::of_solc(child.as_bytes())].concat();
    let making = [
        b"\x60\x02".as_slice(),
        &made,
        b"\x60\x03",
        &trailer::of_solc(factory.as_bytes()),
    ]
    .concat();
    let compiled = |metadata: &str, code: &[u8]| {
        let mut compiled = serde_json::json!({ "abi": [], "metadata": metadata });
        if with_code {
            compiled["evm"] = serde_json::json!({ "bytecode": { "object": const_hex::encode(code) } });
        }
        compiled
    };
    Built {
        output: serde_json::json!({ "contracts": { "F.sol": {
            "Child": compiled(&child, &made), "Factory": compiled(&factory, &making) } } }),
        input: serde_json::json!({ "language": "Solidity", "sources": { "F.sol": { "content": "x" } } }),
        factory: making,
    }
}

pub(super) fn deployed(init: &[u8]) -> OnChain {
    with_code(ContractCode {
        init: Some(init.to_vec().into()),
        runtime: None,
    })
}

#[test]
fn a_factory_is_not_shown_as_its_child_where_only_its_creation_is_known() {
    let read = |built: &Built, name: Option<&str>| {
        let mut file = serde_json::json!({ "input": built.input, "output": built.output });
        if let Some(name) = name {
            file["contractName"] = name.into();
        }
        let on_chain = deployed(&[built.factory.as_slice(), &[9; 32]].concat());
        let candidate = single::read(&file.to_string(), &on_chain)?;
        let settled = settle(candidate, &on_chain).map_err(|refused| refused.reason)?;
        let facts = settled.facts;
        let worth = Worth::of(&facts);
        Ok((facts.name.unwrap(), worth, facts.constructor_arguments))
    };
    let factory = |worth, arguments| Ok::<_, String>(("Factory".to_owned(), worth, arguments));
    // The code that was compiled tells; what follows it is what the constructor was given.
    let whole = built(true);
    let given = Some(Bytes::from(vec![9; 32]));
    for name in [None, Some("Factory"), Some("Child")] {
        assert_eq!(
            read(&whole, name),
            factory(Worth::Sources(MatchKind::Full), given.clone()),
            "{name:?}"
        );
    }
    let mut alone = built(true);
    let contracts = alone.output["contracts"]["F.sol"].as_object_mut().unwrap();
    contracts.remove("Factory").unwrap();
    let said = read(&alone, None).unwrap_err();
    assert!(
        said.contains("is not what `F.sol:Child` was compiled to"),
        "{said}"
    );
    // Metadata alone tells nothing: both are named in the code.
    let bare = built(false);
    let said = read(&bare, None).unwrap_err();
    assert!(
        said.contains("2 contracts (F.sol:Child, F.sol:Factory)")
            && said.contains("name it as `contractName`"),
        "{said}"
    );
    // And what is named is the operator's word.
    assert_eq!(read(&bare, Some("Factory")), factory(Worth::Stated, None));
}

#[test]
fn a_tree_without_a_claim_is_no_full_match_of_code_that_names_several_metadata() {
    let other = trailer::of_solc(b"{}");
    let init = [b"\x60".as_slice(), &other, &trailer::of_solc(METADATA.as_bytes())].concat();
    let of = |claim| Worth::of(&settle(candidate(claim), &deployed(&init)).unwrap().facts);
    assert_eq!(of(Claim::None), Worth::Stated);
    // Who compiled it is believed, as the code says nothing against it.
    assert_eq!(of(Claim::Full), Worth::Sources(MatchKind::Full));
    assert_eq!(of(Claim::Partial), Worth::Sources(MatchKind::Partial));
    let only = [b"\x60".as_slice(), &trailer::of_solc(METADATA.as_bytes())].concat();
    let facts = settle(candidate(Claim::None), &deployed(&only)).unwrap().facts;
    assert_eq!((facts.match_kind, facts.stated), (MatchKind::Full, false));
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark() {
    let abi = r#"[{"type":"function","name":"f","inputs":[]}]"#;
    let input = r#"{"language":"Solidity","sources":{"A.sol":{"content":"\ufeffx"}}}"#;
    for text in [abi, input, METADATA] {
        let read = |text: &str| single::read(text, &OnChain::default());
        let (plain, marked) = (read(text).unwrap(), read(&format!("\u{feff}{text}")).unwrap());
        assert_eq!(marked.abi, plain.abi, "{text}");
        // What is hashed stays as it is.
        assert_eq!(
            (marked.sources, marked.metadata),
            (plain.sources, plain.metadata),
            "{text}"
        );
    }
}
