//! What is known of a factory's creation code, which names several metadata, and what takes its place.

use super::tests::{built, deployed};
use super::*;
use crate::import::tests::{Bed, Watch};
use crate::model::MatchKind;

/// What is known of a factory in a store without traces.
fn factory() -> OnChain {
    deployed(&[built(true).factory.as_slice(), &[9; 32]].concat())
}

/// A contract of build information without compiled code; or of its output alone, with it.
fn candidate(name: &str, with_code: bool, claim: Claim) -> Candidate {
    let mut built = built(with_code);
    let contracts = built.output["contracts"]["F.sol"].as_object_mut().unwrap();
    if with_code {
        contracts.retain(|of, _| of == name);
    }
    let file = serde_json::json!({ "input": built.input, "output": built.output, "contractName": name });
    Candidate {
        claim,
        ..single::read(&file.to_string(), &factory()).unwrap()
    }
}

/// Puts the row that an earlier version wrote: whichever metadata the code names was a full match.
fn seed(bed: &Bed, name: &str) {
    let settled = settle(candidate(name, false, Claim::File), &factory()).unwrap();
    let facts = ContractFacts {
        match_kind: MatchKind::Full,
        stated: false,
        ..settled.facts
    };
    assert!(facts.checked);
    let abi = settled.abi.as_ref().map(|(text, names)| (text.as_str(), names));
    let rows = ImportWriter::contract_rows(&Address::ZERO, &facts, abi, settled.texts);
    bed.target.writer.write(&rows).unwrap();
}

/// Takes one candidate: how many were taken and changed, and why it was refused.
fn take(bed: &Bed, candidate: Candidate) -> (u64, u64, Vec<String>) {
    let watch = Watch::default();
    let mut import = Import::new(&bed.target, &watch);
    import.take("it", &factory(), Ok(candidate)).unwrap();
    import.flush().unwrap();
    (import.report.taken, import.report.changed, watch.reasons())
}

fn known(bed: &Bed) -> Option<(String, MatchKind)> {
    let facts = bed.target.writer.contract(&Address::ZERO).unwrap()?;
    Some((facts.name.unwrap(), facts.match_kind))
}

fn is(name: &str, kind: MatchKind) -> Option<(String, MatchKind)> {
    Some((name.to_owned(), kind))
}

const CHANGED: (u64, u64, Vec<String>) = (1, 1, Vec::new());
const THERE: (u64, u64, Vec<String>) = (1, 0, Vec::new());

#[test]
fn a_child_that_an_earlier_version_took_for_its_factory_gives_way_to_the_factory() {
    for claim in [Claim::File, Claim::None, Claim::Partial] {
        let bed = Bed::new();
        seed(&bed, "Child");
        // Its own import again says nothing new.
        assert_eq!(take(&bed, candidate("Child", false, claim)), THERE, "{claim:?}");
        assert_eq!(known(&bed), is("Child", MatchKind::Full));
        assert_eq!(
            take(&bed, candidate("Factory", false, claim)),
            CHANGED,
            "{claim:?}"
        );
        assert_eq!(known(&bed), is("Factory", MatchKind::Partial));
        assert_eq!(take(&bed, candidate("Factory", false, claim)), THERE, "{claim:?}");
    }
}

#[test]
fn a_factory_that_an_earlier_version_took_stays_when_it_comes_again() {
    for claim in [Claim::File, Claim::None, Claim::Partial] {
        let bed = Bed::new();
        seed(&bed, "Factory");
        for _ in 0..2 {
            assert_eq!(take(&bed, candidate("Factory", false, claim)), THERE, "{claim:?}");
            assert_eq!(known(&bed), is("Factory", MatchKind::Full));
        }
    }
    // Also where a file does not tell the name.
    let bed = Bed::new();
    seed(&bed, "Factory");
    let mut nameless = candidate("Factory", false, Claim::File);
    (nameless.facts.name, nameless.facts.main, nameless.abi) = (None, None, None);
    assert_eq!(take(&bed, nameless), THERE);
    assert_eq!(known(&bed), is("Factory", MatchKind::Full));
}

#[test]
fn what_compiled_code_or_a_claim_told_of_a_factory_does_not_give_way() {
    for told in [
        || candidate("Factory", true, Claim::File),
        || candidate("Factory", false, Claim::Full),
    ] {
        let bed = Bed::new();
        seed(&bed, "Child");
        for expected in [CHANGED, THERE] {
            assert_eq!(take(&bed, told()), expected);
            assert_eq!(known(&bed), is("Factory", MatchKind::Full));
        }
        for claim in [Claim::File, Claim::None, Claim::Partial] {
            let (taken, _, reasons) = take(&bed, candidate("Child", false, claim));
            assert_eq!(taken, 0, "{claim:?}");
            assert!(reasons[0].ends_with("is worth more"), "{reasons:?}");
            assert_eq!(take(&bed, candidate("Factory", false, claim)), THERE, "{claim:?}");
        }
        assert_eq!(known(&bed), is("Factory", MatchKind::Full));
    }
}

#[test]
fn a_child_that_compiled_code_contradicts_is_forgotten_and_its_factory_is_not() {
    let bed = Bed::new();
    seed(&bed, "Child");
    let refused = || candidate("Child", true, Claim::File);
    let (_, _, reasons) = take(&bed, refused());
    assert!(
        reasons[0].contains("is not what `F.sol:Child` was compiled to")
            && reasons[0].ends_with("for one of several hashes in its code is forgotten"),
        "{reasons:?}"
    );
    assert_eq!(known(&bed), None);
    // Both lie in one file.
    seed(&bed, "Factory");
    let (_, _, reasons) = take(&bed, refused());
    assert!(!reasons[0].contains("forgotten"), "{reasons:?}");
    assert_eq!(known(&bed), is("Factory", MatchKind::Full));
}

/// An earlier version took a claim for a full match where it had nothing but creation code.
#[test]
fn a_full_match_of_code_that_names_nothing_gives_way_to_a_partial_one() {
    let bed = Bed::new();
    seed(&bed, "Factory");
    let on_chain = deployed(&[0x60, 0x2a, 0x60, 0, 0x52]);
    for changed in [1, 0] {
        let watch = Watch::default();
        let mut import = Import::new(&bed.target, &watch);
        let candidate = candidate("Factory", false, Claim::Full);
        import.take("it", &on_chain, Ok(candidate)).unwrap();
        import.flush().unwrap();
        assert_eq!((import.report.taken, import.report.changed), (1, changed));
        assert_eq!(known(&bed), is("Factory", MatchKind::Partial));
    }
}
