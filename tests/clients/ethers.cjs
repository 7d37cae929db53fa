// Reads the chain through ethers from a service and from its node, and compares.
// node ethers.cjs SERVICE NODE CONTRACT
const { JsonRpcProvider } = require("ethers");
const assert = require("node:assert");

const [, , service, node, contract] = process.argv;

const plain = (value) =>
  JSON.parse(JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? inner.toString() : inner)));

// A service says nothing of what only this node adds.
const receipt = (value) => {
  const { blobGasPrice, blobGasUsed, ...rest } = plain(value);
  return rest;
};

async function main() {
  const theirs = new JsonRpcProvider(node);
  // Batches by default: calls of one tick go as one request.
  const ours = new JsonRpcProvider(service);
  const network = await ours.getNetwork();
  assert.deepStrictEqual(network.chainId, (await theirs.getNetwork()).chainId);
  const head = await theirs.getBlockNumber();
  assert.strictEqual(await ours.getBlockNumber(), head);
  let compared = 0;
  const numbers = Array.from({ length: head + 1 }, (_, number) => number);
  const blocks = await Promise.all(numbers.map((number) => ours.getBlock(number, true)));
  for (const block of blocks) {
    const expected = await theirs.getBlock(block.number, true);
    assert.deepStrictEqual(plain(block), plain(expected));
    assert.deepStrictEqual(plain(block.prefetchedTransactions), plain(expected.prefetchedTransactions));
    for (const hash of block.transactions) {
      const [found, wanted] = await Promise.all([
        ours.getTransactionReceipt(hash),
        theirs.getTransactionReceipt(hash),
      ]);
      assert.deepStrictEqual(receipt(found), receipt(wanted));
      compared += 1;
    }
  }
  const filter = { address: contract, fromBlock: 0, toBlock: "latest" };
  const logs = await ours.getLogs(filter);
  assert.deepStrictEqual(plain(logs), plain(await theirs.getLogs(filter)));
  assert(logs.length > 0, "the contract logs");
  for (const block of [0, head >> 1, head, "latest"]) {
    assert.strictEqual(await ours.getBalance(contract, block), await theirs.getBalance(contract, block));
  }
  assert.strictEqual(await ours.getCode(contract), await theirs.getCode(contract));
  await assert.rejects(ours.send("eth_sendRawTransaction", ["0x00"]), /does not exist|not served/);
  ours.destroy();
  theirs.destroy();
  console.log(`compared ${compared} receipts and ${logs.length} logs`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
