// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import "./Coin.sol";

/// Name and symbol as bytes32, as tokens of 2016 answer them.
contract AncientCoin {
    bytes32 public constant name = "Ancient Coin";
    bytes32 public constant symbol = "ANC";
    uint256 public constant decimals = 9;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// Wrapped native coin: Deposit and Withdrawal move balance without a Transfer.
contract WrappedCoin {
    string public constant name = "Wrapped Demo Ether";
    string public constant symbol = "WDETH";
    uint8 public constant decimals = 18;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Deposit(address indexed to, uint256 value);
    event Withdrawal(address indexed from, uint256 value);

    receive() external payable {
        deposit();
    }

    function deposit() public payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    function withdraw(uint256 value) external {
        balanceOf[msg.sender] -= value;
        emit Withdrawal(msg.sender, value);
        (bool ok,) = msg.sender.call{value: value}("");
        require(ok, "withdrawal refused");
    }

    function totalSupply() external view returns (uint256) {
        return address(this).balance;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// The event tells the whole amount, the recipient gets 98 percent, the collector the rest without an event.
contract FeeCoin is Coin {
    address public immutable collector;

    constructor(address collector_) Coin("Toll Coin", "TOLL", 18, 1_000_000 ether) {
        collector = collector_;
    }

    function _move(address from, address to, uint256 value) internal override {
        _take(from, value);
        uint256 fee = value / 50;
        balanceOf[to] += value - fee;
        balanceOf[collector] += fee;
        emit Transfer(from, to, value);
    }
}

/// Balances are shares of a pot; the pot grows and shrinks without events.
contract RebaseCoin {
    string public constant name = "Tidal Coin";
    string public constant symbol = "TIDE";
    uint8 public constant decimals = 18;
    uint256 public totalSupply;
    uint256 public totalShares;
    mapping(address => uint256) public sharesOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint256 supply) {
        totalSupply = supply;
        totalShares = supply;
        sharesOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function rebase(uint256 supply) external {
        totalSupply = supply;
    }

    function balanceOf(address holder) public view returns (uint256) {
        return sharesOf[holder] * totalSupply / totalShares;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 shares = value * totalShares / totalSupply;
        sharesOf[msg.sender] -= shares;
        sharesOf[to] += shares;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// Mints to its owner without an event.
contract SilentCoin is Coin {
    constructor() Coin("Silent Coin", "HUSH", 18, 500_000 ether) {}

    function mintSilently(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
    }
}

/// A transfer to the zero address is an ordinary transfer: the zero address holds, the supply stays.
contract AshCoin is Coin {
    constructor() Coin("Ash Coin", "ASH", 0, 10_000_000) {}
}

/// Says it moved what never was. No name, a symbol that reverts, decimals beyond a byte.
contract LyingCoin {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function symbol() external pure returns (string memory) {
        revert("no symbol");
    }

    function decimals() external pure returns (uint256) {
        return 1000;
    }

    function totalSupply() external pure returns (uint256) {
        return 42;
    }

    function balanceOf(address) external pure returns (uint256) {
        return 7;
    }

    function say(address from, address to, uint256 value) external {
        emit Transfer(from, to, value);
    }
}
