// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An aggregator in the manner of Chainlink's: what it is told it answers.
contract Aggregator {
    event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt);

    uint8 public immutable decimals;
    uint256 public round;

    constructor(uint8 places) {
        decimals = places;
    }

    function transmit(int256 answer) external {
        round += 1;
        emit AnswerUpdated(answer, round, block.timestamp);
    }
}

/// A proxy that stands for one aggregator after the other and names no events.
contract Proxy {
    uint16 public phaseId;
    mapping(uint16 => address) public phaseAggregators;

    function confirm(address next) external {
        phaseId += 1;
        phaseAggregators[phaseId] = next;
    }

    function aggregator() external view returns (address) {
        return phaseAggregators[phaseId];
    }

    function decimals() external view returns (uint8) {
        return Aggregator(phaseAggregators[phaseId]).decimals();
    }
}
