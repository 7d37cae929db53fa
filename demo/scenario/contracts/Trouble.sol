// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Every way for a transaction to fail, and every way for a part of it to fail while the whole succeeds.
contract Trouble {
    uint256[] private numbers;
    uint256 private zero;

    error Refused(address who, uint256 code);
    error Plain();

    event Tried(string what, bool ok);

    function withReason() external payable {
        revert("the reason is a sentence");
    }

    function withoutReason() external payable {
        revert();
    }

    function withCustom(uint256 code) external payable {
        revert Refused(msg.sender, code);
    }

    function withPlainCustom() external pure {
        revert Plain();
    }

    function panicAssert() external view {
        assert(zero == 1);
    }

    function panicDivision() external view returns (uint256) {
        return 1 / zero;
    }

    function panicIndex() external view returns (uint256) {
        return numbers[7];
    }

    function panicOverflow() external view returns (uint256) {
        return type(uint256).max + (zero + 1);
    }

    function invalidOpcode() external payable {
        assembly {
            invalid()
        }
    }

    function outOfGas() external payable {
        while (true) zero = zero;
    }

    function longReason() external pure {
        revert(
            "a reason of more than two hundred characters, as some contracts give it, so that nobody thinks thirty-two bytes or one word of data or a fixed buffer would do for the text; it goes on until here, with quotes \" and a backslash \\"
        );
    }

    /// Each failure below a transaction that succeeds.
    function tryAll() external payable {
        _try("withReason()", 1);
        _try("withoutReason()", 2);
        _try("withPlainCustom()", 0);
        _try("panicAssert()", 0);
        _try("panicDivision()", 0);
        _try("invalidOpcode()", 3);
        _try("outOfGas()", 4);
    }

    function _try(string memory signature, uint256 value) private {
        (bool ok,) = address(this).call{value: value, gas: 30_000}(abi.encodeWithSignature(signature));
        emit Tried(signature, ok);
    }
}
