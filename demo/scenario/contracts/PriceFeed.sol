// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A price aggregator in the manner of Chainlink's.
contract Aggregator {
    uint8 public constant decimals = 8;
    string public description;
    int256 public latestAnswer;
    uint256 public latestRound;
    uint256 public latestTimestamp;

    event NewRound(uint256 indexed roundId, address indexed startedBy, uint256 startedAt);
    event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt);

    constructor(string memory description_) {
        description = description_;
    }

    function submit(int256 answer) external {
        latestAnswer = answer;
        latestTimestamp = block.timestamp;
        latestRound++;
        emit NewRound(latestRound, msg.sender, block.timestamp);
        emit AnswerUpdated(answer, latestRound, block.timestamp);
    }
}

/// What users read: it points at the aggregator of the day.
contract FeedProxy {
    Aggregator public aggregator;
    address public immutable owner = msg.sender;

    constructor(Aggregator aggregator_) {
        aggregator = aggregator_;
    }

    function setAggregator(Aggregator next) external {
        require(msg.sender == owner, "not the owner");
        aggregator = next;
    }

    function decimals() external view returns (uint8) {
        return aggregator.decimals();
    }

    function description() external view returns (string memory) {
        return aggregator.description();
    }

    function latestAnswer() external view returns (int256) {
        return aggregator.latestAnswer();
    }
}
