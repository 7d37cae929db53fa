// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {Counting} from "Counting.sol";

/// An ERC-20 token of the least kind.
contract Coin {
    string public name = "Client Coin";
    string public symbol = "CLC";
    uint8 public decimals = 6;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(balanceOf[msg.sender] >= value, "too little");
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// An ERC-721 token likewise.
contract Deeds {
    string public name = "Client Deeds";
    string public symbol = "CLD";
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;
    event Transfer(address indexed from, address indexed to, uint256 indexed id);

    function mint(address to, uint256 id) external {
        ownerOf[id] = to;
        balanceOf[to] = Counting.next(balanceOf[to]);
        emit Transfer(address(0), to, id);
    }
}

/// An ERC-1155 token likewise.
contract Goods {
    mapping(uint256 => mapping(address => uint256)) public held;
    event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value);

    function mint(address to, uint256 id, uint256 value) external {
        held[id][to] += value;
        emit TransferSingle(msg.sender, address(0), to, id, value);
    }
}

/// Passes on what it is paid.
contract Payer {
    function pay(address payable to) external payable {
        to.transfer(msg.value);
    }
}
