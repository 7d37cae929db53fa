// Reads the chain through viem from a service and from its node, and compares.
// node viem.cjs SERVICE NODE CONTRACT
const { createPublicClient, http } = require("viem");
const assert = require("node:assert");

const [, , service, node, contract] = process.argv;

// A service says nothing of what only this node adds.
const receipt = ({ blobGasPrice, blobGasUsed, blockTimestamp, ...rest }) => rest;

async function main() {
  const ours = createPublicClient({ transport: http(service, { batch: true }) });
  const theirs = createPublicClient({ transport: http(node) });
  assert.strictEqual(await ours.getChainId(), await theirs.getChainId());
  const head = await theirs.getBlockNumber();
  assert.strictEqual(await ours.getBlockNumber({ cacheTime: 0 }), head);
  let compared = 0;
  for (let blockNumber = 0n; blockNumber <= head; blockNumber += 1n) {
    const asked = { blockNumber, includeTransactions: true };
    const [found, expected] = await Promise.all([ours.getBlock(asked), theirs.getBlock(asked)]);
    assert.deepStrictEqual(found, expected);
    assert.strictEqual(
      await ours.getBlockTransactionCount({ blockNumber }),
      await theirs.getBlockTransactionCount({ blockNumber }),
    );
    const hashes = found.transactions.map((transaction) => transaction.hash);
    const receipts = await Promise.all(hashes.map((hash) => ours.getTransactionReceipt({ hash })));
    for (const [place, hash] of hashes.entries()) {
      const wanted = await theirs.getTransactionReceipt({ hash });
      assert.deepStrictEqual(receipt(receipts[place]), receipt(wanted));
      compared += 1;
    }
  }
  const filter = { address: [contract], fromBlock: 0n, toBlock: "latest" };
  const logs = await ours.getLogs(filter);
  assert.deepStrictEqual(logs, await theirs.getLogs(filter));
  assert(logs.length > 0, "the contract logs");
  for (const blockNumber of [0n, head / 2n, head]) {
    const asked = { address: contract, blockNumber };
    assert.strictEqual(await ours.getBalance(asked), await theirs.getBalance(asked));
    assert.strictEqual(await ours.getTransactionCount(asked), await theirs.getTransactionCount(asked));
  }
  assert.strictEqual(await ours.getCode({ address: contract }), await theirs.getCode({ address: contract }));
  console.log(`compared ${compared} receipts and ${logs.length} logs`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
