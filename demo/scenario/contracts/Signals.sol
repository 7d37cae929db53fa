// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Emits logs of any shape: no to four topics, data of any length.
contract Signals {
    event Signal(bytes32 indexed first, bytes32 indexed second, bytes32 indexed third, bytes data);

    function emitLog(bytes32[] calldata topics, bytes calldata data) external {
        _emit(topics, data);
    }

    /// One log for each list of topics, all with the same data.
    function emitMany(bytes32[][] calldata topics, bytes calldata data) external {
        for (uint256 i = 0; i < topics.length; i++) _emit(topics[i], data);
    }

    function emitTyped(bytes32 first, bytes32 second, bytes32 third, bytes calldata data) external {
        emit Signal(first, second, third, data);
    }

    function _emit(bytes32[] calldata t, bytes calldata data) private {
        bytes memory copy = data;
        require(t.length <= 4, "more than four topics");
        uint256 n = t.length;
        assembly {
            let at := add(copy, 32)
            let size := mload(copy)
            let w := t.offset
            switch n
            case 0 { log0(at, size) }
            case 1 { log1(at, size, calldataload(w)) }
            case 2 { log2(at, size, calldataload(w), calldataload(add(w, 32))) }
            case 3 { log3(at, size, calldataload(w), calldataload(add(w, 32)), calldataload(add(w, 64))) }
            default {
                log4(
                    at,
                    size,
                    calldataload(w),
                    calldataload(add(w, 32)),
                    calldataload(add(w, 64)),
                    calldataload(add(w, 96))
                )
            }
        }
    }
}
