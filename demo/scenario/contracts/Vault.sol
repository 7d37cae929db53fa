// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Moves native coin about: several levels deep, under reverted calls, with every kind of call.
contract Vault {
    uint256 public stored;

    event Received(address indexed from, uint256 value);
    event Fell(address indexed from, uint256 value, bytes data);

    receive() external payable {
        emit Received(msg.sender, msg.value);
    }

    fallback() external payable {
        emit Fell(msg.sender, msg.value, msg.data);
    }

    /// Hands the value down a chain of vaults; each keeps one wei, the last pays the end.
    function relay(address payable[] calldata path, address payable end) external payable {
        if (path.length == 0) {
            (bool paid,) = end.call{value: msg.value}("");
            require(paid, "the end refused");
            return;
        }
        Vault(path[0]).relay{value: msg.value - 1}(path[1:], end);
    }

    function split(address payable[] calldata to) external payable {
        uint256 part = msg.value / to.length;
        for (uint256 i = 0; i < to.length; i++) {
            (bool ok,) = to[i].call{value: part}("");
            require(ok, "a part was refused");
        }
    }

    /// Pays and takes it back by reverting.
    function payThenRevert(address payable to) external payable {
        (bool ok,) = to.call{value: msg.value}("");
        require(ok && false, "taken back");
    }

    /// Value moves below an ancestor that reverts; then half of it moves for good.
    function payUnderRevert(address payable to) external payable {
        try this.payThenRevert{value: msg.value}(to) {} catch {}
        (bool ok,) = to.call{value: msg.value / 2}("");
        require(ok, "half was refused");
    }

    function store(uint256 value) external payable returns (uint256) {
        stored = value;
        return value;
    }

    /// Delegate, static and code calls: none of them moves value.
    function callKinds(address target) external payable {
        (bool a,) = target.delegatecall(abi.encodeCall(this.store, (7)));
        (bool b,) = target.staticcall(abi.encodeWithSignature("stored()"));
        // Writing below a static call uses up all the gas it was given.
        (bool c,) = target.staticcall{gas: 20_000}(abi.encodeCall(this.store, (8)));
        (bool d,) = target.call(abi.encodeCall(this.store, (9)));
        require(a && b && !c && d, "calls did not end as expected");
        bytes memory data = abi.encodeCall(this.store, (10));
        assembly {
            pop(callcode(gas(), target, 3, add(data, 32), mload(data), 0, 0))
        }
        (bool e,) = address(4).staticcall(hex"1234");
        require(e, "identity failed");
    }

    /// More than this contract holds: the call fails before it begins.
    function overdraw(address payable to) external payable {
        (bool ok,) = to.call{value: address(this).balance + 1}("");
        require(!ok, "paid what it had not");
    }

    function drain(address payable to) external {
        (bool ok,) = to.call{value: address(this).balance}("");
        require(ok, "refused");
    }
}

/// Ends itself.
contract Mortal {
    constructor() payable {}

    receive() external payable {}

    function end(address payable heir) external payable {
        selfdestruct(heir);
    }
}

/// Makes and ends mortals within one transaction, where ending still destroys (EIP-6780).
contract Undertaker {
    receive() external payable {}

    function makeAndEnd(address payable heir) external payable {
        Mortal mortal = new Mortal{value: msg.value}();
        mortal.end(heir);
    }

    /// To itself and made in the same transaction: the value is destroyed.
    function makeAndBurn() external payable {
        Mortal mortal = new Mortal{value: msg.value}();
        mortal.end(payable(address(mortal)));
    }

    /// Ends one below a call that reverts.
    function endUnderRevert(address payable heir) external payable {
        try this.endThenRevert{value: msg.value}(heir) {} catch {}
    }

    function endThenRevert(address payable heir) external payable {
        Mortal mortal = new Mortal{value: msg.value}();
        mortal.end(heir);
        revert("not ended after all");
    }
}

/// Ends itself while being made: an account that never has code.
contract Stillborn {
    constructor(address payable heir) payable {
        selfdestruct(heir);
    }
}

/// Code for an account under EIP-7702: several calls at once.
contract Batch {
    event Batched(address indexed account, uint256 calls);

    receive() external payable {}

    function run(address[] calldata to, uint256[] calldata values, bytes[] calldata data) external payable {
        for (uint256 i = 0; i < to.length; i++) {
            (bool ok,) = to[i].call{value: values[i]}(data[i]);
            require(ok, "a call of the batch failed");
        }
        emit Batched(address(this), to.length);
    }
}

/// A proxy by EIP-1967.
contract Proxy1967 {
    bytes32 private constant SLOT = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;

    event Upgraded(address indexed implementation);

    constructor(address implementation, bytes memory data) payable {
        _set(implementation);
        if (data.length > 0) {
            (bool ok,) = implementation.delegatecall(data);
            require(ok, "first call failed");
        }
    }

    function upgradeTo(address implementation) external {
        _set(implementation);
    }

    function _set(address implementation) private {
        assembly {
            sstore(SLOT, implementation)
        }
        emit Upgraded(implementation);
    }

    receive() external payable {
        _forward();
    }

    fallback() external payable {
        _forward();
    }

    function _forward() private {
        assembly {
            let implementation := sload(SLOT)
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), implementation, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}
