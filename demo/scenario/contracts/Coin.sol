// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An ordinary ERC-20 whose events explain its balances.
contract Coin {
    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    address public immutable owner;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error InsufficientBalance(address holder, uint256 balance, uint256 needed);

    constructor(string memory name_, string memory symbol_, uint8 decimals_, uint256 supply) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
        owner = msg.sender;
        _mint(msg.sender, supply);
    }

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }

    /// Burns in the way that lowers the supply: the zero address holds nothing.
    function burn(uint256 value) external {
        _take(msg.sender, value);
        totalSupply -= value;
        emit Transfer(msg.sender, address(0), value);
    }

    function transfer(address to, uint256 value) public virtual returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    /// Many transfers, many logs, one transaction.
    function transferMany(address[] calldata to, uint256 value) external {
        for (uint256 i = 0; i < to.length; i++) _move(msg.sender, to[i], value + i);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        require(allowance[from][msg.sender] >= value, "allowance too low");
        allowance[from][msg.sender] -= value;
        _move(from, to, value);
        return true;
    }

    function _mint(address to, uint256 value) internal {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function _take(address from, uint256 value) internal {
        uint256 balance = balanceOf[from];
        if (balance < value) revert InsufficientBalance(from, balance, value);
        unchecked {
            balanceOf[from] = balance - value;
        }
    }

    function _move(address from, address to, uint256 value) internal virtual {
        _take(from, value);
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
