// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Uses up the gas it is asked to, so that blocks are full and the base fee moves.
contract Furnace {
    function work(uint256 gas) external view {
        uint256 end = gasleft() - gas;
        while (gasleft() > end) {}
    }
}
