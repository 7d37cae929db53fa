// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

library Counting {
    function next(uint256 number) internal pure returns (uint256) {
        return number + 1;
    }
}
