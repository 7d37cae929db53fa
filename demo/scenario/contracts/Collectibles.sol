// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// ERC-721 with four topics.
contract Deeds {
    string public constant name = "Demo Deeds";
    string public constant symbol = "DEED";
    uint256 public totalSupply;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f;
    }

    function mint(address to, uint256 id) external {
        require(ownerOf[id] == address(0), "minted before");
        totalSupply++;
        _set(address(0), to, id);
    }

    function burn(uint256 id) external {
        require(ownerOf[id] == msg.sender, "not the owner");
        totalSupply--;
        _set(msg.sender, address(0), id);
    }

    function transferFrom(address from, address to, uint256 id) external {
        require(ownerOf[id] == from && from == msg.sender, "not the owner");
        _set(from, to, id);
    }

    function _set(address from, address to, uint256 id) private {
        if (from != address(0)) balanceOf[from]--;
        if (to != address(0)) balanceOf[to]++;
        ownerOf[id] = to;
        emit Transfer(from, to, id);
    }
}

/// The early form: nothing is indexed, the 96 bytes of data hold everything.
contract EarlyKittens {
    string public constant name = "Early Kittens";
    string public constant symbol = "EK";
    uint256 public totalSupply;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;

    event Transfer(address from, address to, uint256 tokenId);

    function breed(address to) external {
        uint256 id = ++totalSupply;
        balanceOf[to]++;
        ownerOf[id] = to;
        emit Transfer(address(0), to, id);
    }

    function transfer(address to, uint256 id) external {
        require(ownerOf[id] == msg.sender, "not the owner");
        balanceOf[msg.sender]--;
        balanceOf[to]++;
        ownerOf[id] = to;
        emit Transfer(msg.sender, to, id);
    }
}

/// ERC-1155: single and batch.
contract Goods {
    mapping(uint256 => mapping(address => uint256)) public balanceOf;

    event TransferSingle(
        address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value
    );
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );
    event URI(string value, uint256 indexed id);

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0xd9b67a26;
    }

    function mint(address to, uint256 id, uint256 value) external {
        balanceOf[id][to] += value;
        emit TransferSingle(msg.sender, address(0), to, id, value);
        emit URI("demo://goods/{id}", id);
    }

    function mintBatch(address to, uint256[] calldata ids, uint256[] calldata values) external {
        for (uint256 i = 0; i < ids.length; i++) balanceOf[ids[i]][to] += values[i];
        emit TransferBatch(msg.sender, address(0), to, ids, values);
    }

    function safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes calldata) external {
        require(from == msg.sender, "not the owner");
        balanceOf[id][from] -= value;
        balanceOf[id][to] += value;
        emit TransferSingle(msg.sender, from, to, id, value);
    }

    function safeBatchTransferFrom(
        address from,
        address to,
        uint256[] calldata ids,
        uint256[] calldata values,
        bytes calldata
    ) external {
        require(from == msg.sender, "not the owner");
        for (uint256 i = 0; i < ids.length; i++) {
            balanceOf[ids[i]][from] -= values[i];
            balanceOf[ids[i]][to] += values[i];
        }
        emit TransferBatch(msg.sender, from, to, ids, values);
    }
}
