// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// What factories make.
contract Child {
    uint256 public immutable number;
    address public immutable maker = msg.sender;

    constructor(uint256 number_, bool refuse) payable {
        require(!refuse, "born to fail");
        number = number_;
    }

    receive() external payable {}
}

/// A factory that factories make.
contract Workshop {
    event Made(address indexed child, uint256 number);

    function makeBelow(uint256 number) external payable {
        this.make2{value: msg.value}(number, bytes32(number));
    }

    function make2(uint256 number, bytes32 salt) external payable returns (address child) {
        child = address(new Child{salt: salt, value: msg.value}(number, false));
        emit Made(child, number);
    }
}

/// Makes children, and makes workshops that make children.
contract Factory {
    event Made(address indexed child, uint256 number);

    address[] public made;

    receive() external payable {}

    function make(uint256 number) public payable returns (address child) {
        child = address(new Child{value: msg.value}(number, false));
        made.push(child);
        emit Made(child, number);
    }

    function make2(uint256 number, bytes32 salt) public payable returns (address child) {
        child = address(new Child{salt: salt, value: msg.value}(number, false));
        emit Made(child, number);
    }

    /// A workshop, and below it a child by CREATE2 two calls deep.
    function makeNested(uint256 number) external payable {
        Workshop inner = new Workshop();
        inner.makeBelow{value: msg.value}(number);
    }

    /// The constructor reverts, the caller goes on.
    function makeRefused(uint256 number) external payable returns (bool made_) {
        try new Child{value: msg.value}(number, true) {
            made_ = true;
        } catch {
            made_ = false;
        }
    }

    /// The same address twice: the second creation collides.
    function makeTwice(uint256 number, bytes32 salt) external {
        new Child{salt: salt}(number, false);
        try new Child{salt: salt}(number, false) {} catch {}
    }

    function makeThenRevert(uint256 number) external payable {
        new Child{value: msg.value}(number, false);
        revert("unmade");
    }

    /// A child is made below a call that reverts; the transaction succeeds and the child never was.
    function makeUnderRevert(uint256 number) external payable {
        try this.makeThenRevert{value: msg.value}(number) {} catch {}
    }

    /// Init code that returns code starting with 0xEF, which EIP-3541 refuses, and init code that is an invalid opcode. Both
    /// use up all the gas they were given, so each has a call of its own.
    function makeBroken() external {
        (bool a,) = address(this).call{gas: 100_000}(abi.encodeCall(this.makeFrom, (hex"60ef60005360016000f3", false)));
        (bool b,) = address(this).call{gas: 100_000}(abi.encodeCall(this.makeFrom, (hex"fe", true)));
        require(a && b, "more than the creation failed");
    }

    function makeFrom(bytes memory code, bool second) external returns (address made_) {
        assembly {
            switch second
            case 0 { made_ := create(0, add(code, 32), mload(code)) }
            default { made_ := create2(0, add(code, 32), mload(code), 7) }
        }
    }

    /// A minimal proxy (EIP-1167) of the target.
    function clone(address target) external returns (address made_) {
        assembly {
            let p := mload(0x40)
            mstore(p, 0x3d602d80600a3d3981f3363d3d373d3d3d363d73000000000000000000000000)
            mstore(add(p, 0x14), shl(0x60, target))
            mstore(add(p, 0x28), 0x5af43d82803e903d91602b57fd5bf30000000000000000000000000000000000)
            made_ := create(0, p, 0x37)
        }
        emit Made(made_, 0);
    }
}
