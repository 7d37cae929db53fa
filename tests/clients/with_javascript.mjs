// Real clients of Etherscan, unmodified, against the service at QUARRY_URL: npm `etherscan-api` and the provider of `ethers`.
// Says what came of each call, one JSON object a line; the test beside it knows what should have.
import { createRequire } from 'node:module';

const require = createRequire(process.env.QUARRY_TOOLS + '/package.json');
const { EtherscanProvider, FetchRequest, Interface } = require('ethers');
const { init } = await import(new URL('node_modules/etherscan-api/lib/index.js', `file://${process.env.QUARRY_TOOLS}/`));

const base = process.env.QUARRY_URL;
const of = JSON.parse(process.env.QUARRY_WORLD);
// Another host, and nothing else.
const here = (url) => url.replace(/^https:\/\/[^/]+/, base);

async function call(name, make) {
  try {
    const value = await make();
    const plain = JSON.stringify(value, (_, it) => (typeof it === 'bigint' ? it.toString() : it));
    console.log(`{"call":"${name}","ok":${plain ?? 'null'}}`);
  } catch (error) {
    console.log(JSON.stringify({ call: name, error: String(error.message ?? error) }));
  }
}

// The transport is the client's own parameter; it changes the host and nothing else.
const transport = async (url, { method = 'GET', body } = {}) => {
  const headers = body ? { 'content-type': 'application/x-www-form-urlencoded' } : {};
  const response = await fetch(here(url), { method, body, headers });
  return response.json();
};
const api = init('key', of.chain, 10000, transport);
const result = (promise) => promise.then((body) => body.result);

const calls = {
  'account.balance': () => api.account.balance(of.sender),
  'account.balance of several': () => api.account.balance([of.sender, of.nobody]),
  'account.tokenbalance': () => api.account.tokenbalance(of.friend, '', of.coin),
  'account.txlist': () => api.account.txlist(of.sender, 0, 'latest', 1, 100, 'asc'),
  'account.txlist of nobody': () => api.account.txlist(of.nobody, 0, 'latest', 1, 100, 'asc'),
  'account.txlistinternal by address': () => api.account.txlistinternal('', of.payee),
  'account.txlistinternal by hash': () => api.account.txlistinternal(of.paid),
  'account.tokentx by address': () => api.account.tokentx(of.friend),
  'account.tokentx by contract': () => api.account.tokentx('', of.coin),
  'account.tokennfttx': () => api.account.tokennfttx(of.friend, of.deeds),
  'account.token1155tx': () => api.account.token1155tx(of.friend, of.goods),
  'account.getminedblocks': () => api.account.getminedblocks(of.miner),
  'account.txsBeaconWithdrawal': () => api.account.txsBeaconWithdrawal(of.nobody),
  'account.fundedby': () => api.account.fundedby(of.payee),
  'block.getblockreward': () => api.block.getblockreward('', of.block),
  'block.getblockcountdown': () => api.block.getblockcountdown(99999999),
  'block.getblocknobytime': () => api.block.getblocknobytime(of.time),
  'block.getblocktxnscount': () => api.block.getblocktxnscount(of.block),
  'contract.getabi': () => api.contract.getabi(of.coin),
  'contract.getabi unverified': () => api.contract.getabi(of.payer),
  'contract.getsourcecode': () => api.contract.getsourcecode(of.deeds),
  'contract.getsourcecode unverified': () => api.contract.getsourcecode(of.payer),
  'contract.getcontractcreation': () => api.contract.getcontractcreation([of.coin, of.deeds]),
  'gastracker.gasoracle': () => api.gastracker.gasoracle(),
  'log.getLogs': () => api.log.getLogs(of.coin, 0, 'latest', of.transfer),
  'log.getLogs with and': () => api.log.getLogs(of.coin, 0, 'latest', of.transfer, 'and', of.word),
  'log.getLogs without any': () => api.log.getLogs(of.nobody, 0, 'latest'),
  'proxy.eth_blockNumber': () => api.proxy.eth_blockNumber(),
  'proxy.eth_getBlockByNumber': () => api.proxy.eth_getBlockByNumber(of.tag),
  'proxy.eth_getBlockTransactionCountByNumber': () => api.proxy.eth_getBlockTransactionCountByNumber(of.tag),
  'proxy.eth_getTransactionByHash': () => api.proxy.eth_getTransactionByHash(of.paid),
  'proxy.eth_getTransactionByBlockNumberAndIndex': () => api.proxy.eth_getTransactionByBlockNumberAndIndex(of.tag, '0x0'),
  'proxy.eth_getTransactionCount': () => api.proxy.eth_getTransactionCount(of.sender),
  'proxy.eth_getTransactionReceipt': () => api.proxy.eth_getTransactionReceipt(of.paid),
  'proxy.eth_getUncleByBlockNumberAndIndex': () => api.proxy.eth_getUncleByBlockNumberAndIndex(of.tag, '0x0'),
  'proxy.eth_call': () => api.proxy.eth_call(of.coin, of.supply, 'latest'),
  'proxy.eth_getCode': () => api.proxy.eth_getCode(of.coin, 'latest'),
  'proxy.eth_getStorageAt': () => api.proxy.eth_getStorageAt(of.coin, '0x3', 'latest'),
  'proxy.eth_gasPrice': () => api.proxy.eth_gasPrice(),
  'proxy.eth_estimateGas': () => api.proxy.eth_estimateGas(of.friend, '0x1', '0x77359400', '0x5208'),
  'proxy.eth_sendRawTransaction': () => api.proxy.eth_sendRawTransaction('0x00'),
  'stats.tokensupply': () => api.stats.tokensupply('', of.coin),
  'stats.ethsupply': () => api.stats.ethsupply(),
  'stats.ethsupply2': () => api.stats.ethsupply2(),
  'stats.ethprice': () => api.stats.ethprice(),
  'transaction.getstatus': () => api.transaction.getstatus(of.failed),
  'transaction.gettxreceiptstatus': () => api.transaction.gettxreceiptstatus(of.paid),
  'gastracker.gasestimate': () => api.gastracker.gasestimate(2000000000),
  'stats.nodecount': () => api.stats.nodecount(),
};
for (const [name, make] of Object.entries(calls)) await call(`etherscan-api ${name}`, () => result(make()));
await call('etherscan-api usage.chainlist', () => result(api.usage.chainlist()));

// ethers fetches by a function that a program may set; its provider is as it comes.
const fetchUrl = FetchRequest.createGetUrlFunc();
FetchRequest.registerGetUrl((request, signal) => {
  const rerouted = request.clone();
  rerouted.url = here(request.url);
  return fetchUrl(rerouted, signal);
});
const provider = new EtherscanProvider(of.chain, 'key');
const erc20 = new Interface(['function balanceOf(address) view returns (uint256)']);
const reads = {
  getBlockNumber: () => provider.getBlockNumber(),
  getBalance: () => provider.getBalance(of.sender),
  'getBalance at a block': () => provider.getBalance(of.sender, of.block),
  getTransactionCount: () => provider.getTransactionCount(of.sender),
  getCode: () => provider.getCode(of.coin),
  getStorage: () => provider.getStorage(of.coin, 3),
  getBlock: () => provider.getBlock(of.block, true),
  getTransaction: () => provider.getTransaction(of.paid),
  getTransactionReceipt: () => provider.getTransactionReceipt(of.paid),
  call: () => provider.call({ to: of.coin, data: erc20.encodeFunctionData('balanceOf', [of.friend]) }),
  'call that reverts': () => provider.call({ from: of.nobody, to: of.coin, data: of.too_much }),
  estimateGas: () => provider.estimateGas({ from: of.sender, to: of.friend, value: 1n }),
  getEtherPrice: () => provider.getEtherPrice(),
  'getContract, then balanceOf': async () => (await provider.getContract(of.coin)).balanceOf(of.friend),
  'getContract unverified': () => provider.getContract(of.payer),
};
for (const [name, make] of Object.entries(reads)) await call(`ethers ${name}`, make);
process.exit(0);
