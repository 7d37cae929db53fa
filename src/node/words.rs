//! What nodes say when they refuse: the words of clients and providers, who agree on few codes.

/// Whether a text says that `method` is not offered, in the words of clients and providers. A text that speaks of
/// a block or a state that is not available says nothing about the method.
pub(super) fn says_missing(method: &str, lower: &str) -> bool {
    const PHRASES: &[&str] = &[
        "method not found",
        "does not exist/is not available",
        "unsupported method",
        "method not supported",
        "method is not supported",
        "not whitelisted",
        "unknown method",
        "calltracer is not defined",
    ];
    const SUBJECTS: &[&str] = &["method", "namespace", "module", "tracer"];
    const REFUSALS: &[&str] = &[
        "does not exist",
        "is not available",
        "method not available",
        "not enabled",
        "disabled",
        "not allowed",
        "not permitted",
        "not supported",
        "unsupported",
        "not implemented",
    ];
    const OTHER_MATTERS: &[&str] = &[
        "block",
        "header",
        "state",
        "histor",
        "resource",
        "trie",
        "transaction",
    ];
    let says = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(lower, PHRASES) {
        return true;
    }
    let name = method.to_lowercase();
    let rest = lower.replace(&name, "");
    let named = rest.len() < lower.len();
    (named || says(&rest, SUBJECTS)) && says(&rest, REFUSALS) && !says(&rest, OTHER_MATTERS)
}

/// Whether an error of `eth_call` speaks of the contract's code and not of the node. Clients agree on code 3
/// for a revert, and on nothing else: the words are those of geth, reth, erigon, nethermind, besu and anvil.
pub(super) fn failed_execution(code: i64, lower: &str) -> bool {
    const WORDS: &[&str] = &[
        "revert",
        "out of gas",
        "outofgas",
        "gas required exceeds",
        "invalid opcode",
        "opcodenotfound",
        "invalidfeopcode",
        "bad instruction",
        "invalid instruction",
        "invalid jump",
        "invalidjump",
        "bad jump destination",
        "stack underflow",
        "stackunderflow",
        "stack overflow",
        "stackoverflow",
        "stack limit reached",
        "vm execution error",
        "vm exception",
        "write protection",
        "return data out of bounds",
        "outofoffset",
        "gas uint64 overflow",
        // The rest is revm's: what a static call may not do, and what there is not yet.
        "notactivated",
        "precompileerror",
        "insidestatic",
        "duringstaticcall",
        // Besu's for whatever ends a call but a revert, with the reason behind it or without one.
        "could not be completed due to an exception",
    ];
    // Such reasons where they stand alone, or at the end: within other words they may be of the node's own troubles.
    const REASONS: &[&str] = &[
        "out of stack",
        "out of bounds",
        "illegal state change",
        "precompile error",
    ];
    let reason = lower.rsplit(": ").next().unwrap_or(lower);
    // Revm's, for memory, a precompile or an operand that costs more than there is: `MemoryOOG`. Inside a word it would be Google's.
    let runs_out = |word: &str| word.len() > "goog".len() && word.ends_with("oog");
    matches!(code, 3 | -32015)
        || lower.split(|one: char| !one.is_alphanumeric()).any(runs_out)
        || WORDS.iter().any(|word| lower.contains(word))
        || REASONS.contains(&reason.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use crate::node::NodeError;

    #[test]
    fn what_ends_a_call_is_the_contracts_in_the_words_of_besu() {
        const HALTED: &str = "Transaction processing could not be completed due to an exception";
        let is_contracts = |method, message: &str| {
            let error = NodeError::of_rpc(method, -32000, message);
            matches!(error, NodeError::Execution { .. })
        };
        for reason in [
            "",
            ": INVALID_OPERATION",
            ": INVALID_JUMP_DESTINATION",
            ": INSUFFICIENT_GAS",
            ": Out of stack",
            ": Illegal state change",
            " (Invalid opcode: 0x5f)",
        ] {
            let message = format!("{HALTED}{reason}");
            assert!(is_contracts("eth_call", &message), "{message}");
            assert!(!is_contracts("trace_block", &message), "{message}");
        }
        for reason in [
            "Out of stack",
            "Out of bounds",
            "Illegal state change",
            "Precompile error",
            "execution halted: Out of bounds",
        ] {
            assert!(is_contracts("eth_call", reason), "{reason}");
        }
        for message in ["index out of bounds", "the request could not be completed"] {
            assert!(!is_contracts("eth_call", message), "{message}");
        }
    }

    #[test]
    fn a_provider_that_refuses_does_not_speak_for_the_contract() {
        let said = |code, message| NodeError::of_rpc("eth_call", code, message);
        let quota = "Quota exceeded for quota metric of service 'blockchainnodeengine.googleapis.com'";
        for code in [429, -32005] {
            let error = said(code, quota);
            assert!(matches!(error, NodeError::RateLimited { .. }), "{code}: {error}");
        }
        let error = said(-32603, "no answer from googleapis.com");
        assert!(matches!(error, NodeError::Rpc { .. }), "{error}");
        for word in [
            "MemoryOOG",
            "EVM error: PrecompileOOG.",
            "InvalidOperandOOG (gas: 5)",
        ] {
            let error = said(-32603, word);
            assert!(matches!(error, NodeError::Execution { .. }), "{error}");
        }
        let error = said(-32000, "execution reverted: rate limit exceeded");
        assert!(matches!(error, NodeError::Execution { .. }), "{error}");
    }

    #[test]
    fn only_a_refusal_of_the_method_says_that_it_is_missing() {
        let told = |code, message| NodeError::of_rpc("trace_block", code, message).is_missing_method();
        for (code, message) in [
            (-32601, "anything"),
            (-32604, "Method not enabled"),
            (-32000, "the method trace_block does not exist/is not available"),
            (
                -32600,
                "trace_block is not available on the Free tier - upgrade for access",
            ),
            (-32004, "Method trace_block is not supported"),
            (-32000, "rpc method is not whitelisted"),
            (-32052, "API key is not allowed to access method"),
            (
                -32600,
                "The method 'trace_block' is found but the namespace 'trace' is disabled for this URL",
            ),
            (-32601, "this method is disabled"),
        ] {
            assert!(told(code, message), "{message}");
        }
        for (code, message) in [
            (-32001, "Resource not found"),
            (-32000, "header not found"),
            (-32000, "unknown block"),
            (-32000, "trace_block: block not found"),
            (-32000, "missing trie node"),
            (-32000, "historical state 0x12 is not available"),
            (
                -32000,
                "method trace_block: required historical state is not available",
            ),
            (-32603, "method handler crashed"),
            (-32000, "execution timeout"),
            (-32000, "block #7 does not exist"),
            (-32602, "invalid params"),
        ] {
            assert!(!told(code, message), "{message}");
        }
        let body = r#"{"jsonrpc":"2.0","error":{"code": -32601,"message":"no"}}"#;
        for (status, body, missing) in [
            (403, body, true),
            (403, "Method not allowed for this key", true),
            (403, "forbidden", false),
            (502, body, false),
        ] {
            let error = NodeError::HttpStatus {
                method: "trace_block",
                status,
                body: body.to_owned(),
            };
            assert_eq!(error.is_missing_method(), missing, "{status} {body}");
        }
    }
}
