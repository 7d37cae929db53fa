// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A stable coin made to stand behind a proxy: its storage is the proxy's.
contract StableCoin {
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function name() external pure returns (string memory) {
        return "Demo Dollar";
    }

    function symbol() external pure returns (string memory) {
        return "DUSD";
    }

    function decimals() external pure returns (uint8) {
        return 6;
    }

    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
