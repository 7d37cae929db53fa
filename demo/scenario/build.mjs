// Builds the demo chain: `make demo-chain`. Starts a node, plays the scenario, records every block, reads the
// recording back with its own eyes, and writes it with a manifest beside it.
import { execFileSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { Chain } from './chain.mjs'
import { compile, writeVerified } from './compile.mjs'
import { tokenFacts } from './facts.mjs'
import { FIRST_DAY, nobody, Scenario, SILENT_MINTS, topics } from './scenario.mjs'
import { recordState } from './state.mjs'
import { ethers, path } from './tools.mjs'
import { checkLine, checkTokens, coverage, Ledger } from './verify.mjs'

const CHAIN_ID = 31337
const GENESIS_TIME = FIRST_DAY + 8 * 3600 - 600

const artifacts = compile()
const chain = await Chain.start({
  chainId: CHAIN_ID, genesisTime: GENESIS_TIME, gasLimit: 4_000_000, baseFee: 20_000_000_000, accounts: 20, balance: 10_000,
})

/** All accounts at block 0, in the form of a genesis file. */
async function genesisFile() {
  const state = JSON.parse(gunzipSync(Buffer.from((await chain.rpc('anvil_dumpState')).slice(2), 'hex')))
  const alloc = {}
  for (const [address, a] of Object.entries(state.accounts).sort()) {
    alloc[address] = { balance: a.balance, ...(a.code && a.code !== '0x' ? { code: a.code } : {}), ...(a.nonce ? { nonce: `0x${a.nonce.toString(16)}` } : {}) }
  }
  const b = await chain.rpc('eth_getBlockByNumber', '0x0', false)
  return {
    config: { chainId: CHAIN_ID, terminalTotalDifficulty: 0, londonBlock: 0, shanghaiTime: 0, cancunTime: 0, pragueTime: 0 },
    timestamp: b.timestamp, gasLimit: b.gasLimit, baseFeePerGas: b.baseFeePerGas, difficulty: b.difficulty, nonce: b.nonce,
    mixHash: b.mixHash, coinbase: b.miner, extraData: b.extraData, alloc,
  }
}

async function record() {
  const head = Number(await chain.rpc('eth_blockNumber'))
  const numbers = Array.from({ length: head + 1 }, (_, n) => `0x${n.toString(16)}`)
  const [blocks, receipts, traces] = await Promise.all([
    chain.batch(numbers.map((n) => ['eth_getBlockByNumber', n, true])),
    chain.batch(numbers.map((n) => ['eth_getBlockReceipts', n])),
    chain.batch(numbers.map((n) => ['trace_block', n])),
  ])
  return numbers.map((_, i) => {
    const line = { block: blocks[i].result, receipts: receipts[i].result, traces: traces[i].result }
    for (const [key, value] of Object.entries(line)) if (!value) throw new Error(`block ${i}: the node gave no ${key}`)
    return line
  })
}

/** The recording against itself and against the node's balances; every difference is a reason to stop. */
async function verify(lines, genesis) {
  const ledger = new Ledger(genesis.alloc)
  const opening = ledger.supply()
  const wrong = []
  const native = new Map()
  for (const [i, line] of lines.entries()) {
    wrong.push(...checkLine(line, lines[i - 1]?.block))
    const touched = [...ledger.apply(line)].sort()
    const said = await chain.batch(touched.map((a) => ['eth_getBalance', a, line.block.number]))
    touched.forEach((address, k) => {
      const balance = BigInt(said[k].result)
      if (balance !== (ledger.balances.get(address) ?? 0n)) {
        wrong.push(`block ${i}: ${address} has ${balance}, its causes give ${ledger.balances.get(address) ?? 0n}`)
      }
      const history = native.get(address) ?? native.set(address, []).get(address)
      if ((history.at(-1)?.[1] ?? `${BigInt(genesis.alloc[address]?.balance ?? 0)}`) !== `${balance}`) history.push([i, `${balance}`])
    })
    const supply = opening - ledger.burnt - ledger.destroyed
    if (ledger.supply() !== supply) wrong.push(`block ${i}: balances sum to ${ledger.supply()}, the supply is ${supply}`)
  }
  return { wrong, native, opening, burnt: ledger.burnt, destroyed: ledger.destroyed }
}

function refuse(wrong) {
  for (const sentence of wrong.slice(0, 40)) console.error(`wrong: ${sentence}`)
  if (wrong.length > 0) throw new Error(`${wrong.length} differences; nothing was written`)
}

function compress(name, text) {
  const target = path(`../${name}`)
  execFileSync('zstd', ['-19', '-q', '-f', '-o', target], { input: text, maxBuffer: 1 << 30 })
  return statSync(target).size
}

try {
  const genesis = await genesisFile()
  const scenario = new Scenario(chain, artifacts)
  await scenario.run((day) => process.stderr.write(`\rday ${day} `))
  process.stderr.write('\n')

  const lines = await record()
  const checked = await verify(lines, genesis)
  refuse(checked.wrong)

  const head = lines.at(-1).block
  const { counts, days } = coverage(lines)
  const at = (name) => scenario.at(name).toLowerCase()
  const whereabouts = new Map(lines.flatMap(({ block, receipts }) => receipts.map((r) => [r.transactionHash, [Number(block.number), Number(r.status)]])))
  const clone = lines.flatMap((l) => l.traces).find((t) => t.transactionHash === scenario.hashes.clone && t.type === 'create').result.address
  const token = (name, type, exact, note) => ({ address: at(name), contract: scenario.names[name].contract, type, ...(type === 'ERC20' ? { exact } : {}), note })
  // Holders that no event names.
  const silentMints = SILENT_MINTS.map((day) => scenario.holders[day].toLowerCase())
  const tokens = {
    coin: token('coin', 'ERC20', true, 'ordinary; many holders; burns lower the supply'),
    dollar: { ...token('dollar', 'ERC20', true, 'stable coin behind an EIP-1967 proxy'), implementation: at('dollarCode2') },
    ancient: token('ancient', 'ERC20', true, 'name and symbol are bytes32'),
    wrapped: token('wrapped', 'ERC20', true, 'Deposit and Withdrawal move balance without Transfer'),
    ash: { ...token('ash', 'ERC20', true, 'the zero address is a holder: transfers to it leave the supply as it is'), zeroAddressHolds: true },
    toll: { ...token('toll', 'ERC20', false, 'the recipient gets 98 percent of what the event says'), unnamed: [nobody('toll collector').toLowerCase()] },
    tide: token('tide', 'ERC20', false, 'rebasing'),
    hush: { ...token('hush', 'ERC20', false, 'mints without an event'), unnamed: silentMints },
    liar: token('liar', 'ERC20', false, 'events without balances; no name, symbol reverts, decimals 1000'),
    deeds: token('deeds', 'ERC721', null, 'four topics'),
    kittens: token('kittens', 'ERC721', null, 'early form: 96 bytes of data, one topic'),
    goods: token('goods', 'ERC1155', null, 'single and batch, a batch with a repeated id, an empty batch'),
  }
  const state = await recordState(chain, lines, tokens)
  refuse(checkTokens(lines, tokens, state.tokens))

  const manifest = {
    chainId: CHAIN_ID,
    genesis: { hash: lines[0].block.hash, timestamp: GENESIS_TIME },
    head: { number: Number(head.number), hash: head.hash, timestamp: Number(head.timestamp) },
    days,
    counts,
    supply: { opening: `${checked.opening}`, burnt: `${checked.burnt}`, destroyed: `${checked.destroyed}` },
    prices: { native: [at('nativeFeed1'), at('nativeFeed2')], stable: [at('stableFeed')], nativeProxy: at('nativeFeedProxy'), stableProxy: at('stableFeedProxy') },
    accounts: Object.fromEntries(chain.wallets.slice(0, 22).map((w, i) => [i < 20 ? `account${i}` : `fresh${i - 20}`, w.address.toLowerCase()])),
    validators: Object.fromEntries(['north', 'south', 'west'].map((n, i) => [n, scenario.validators[i].toLowerCase()])),
    tokens,
    contracts: Object.fromEntries(Object.entries(scenario.names).map(([name, n]) => [name, { address: n.address.toLowerCase(), contract: n.contract, creation: n.hash }])),
    proxies: { eip1967: at('dollar'), eip1167: clone },
    transactions: Object.fromEntries(Object.entries(scenario.hashes).map(([name, hash]) => [name, { hash, block: whereabouts.get(hash)[0], status: whereabouts.get(hash)[1] }])),
    topics,
  }
  writeVerified(artifacts, CHAIN_ID, [{ name: 'Coin', address: at('coin') }, { name: 'FeeCoin', address: at('toll') }], [{ name: 'Signals' }])
  manifest.verified = { tree: ['coin', 'toll'], standardJson: { 'Signals.standard.json': 'signals' } }

  writeFileSync(path('../chain.json'), `${JSON.stringify(manifest, null, 1)}\n`)
  writeFileSync(path('../tokens.json'), `${JSON.stringify(tokenFacts(tokens, state.tokens), null, 1)}\n`)
  writeFileSync(path('../genesis.json'), `${JSON.stringify(genesis, null, 1)}\n`)
  const size = compress('chain.jsonl.zst', lines.map((l) => `${JSON.stringify(l)}\n`).join(''))
  const stateSize = compress('state.json.zst', JSON.stringify({ native: Object.fromEntries([...checked.native].filter(([, h]) => h.length > 0)), ...state }))

  for (const [key, value] of Object.entries(counts).sort()) console.log(`${key.padEnd(40)} ${value}`)
  console.log(`days                                     ${days.first} to ${days.last}, ${days.withBlocks} with blocks`)
  console.log(`chain.jsonl.zst ${size} bytes, state.json.zst ${stateSize} bytes; head ${Number(head.number)} ${head.hash}`)
} finally {
  chain.stop()
}
process.exit(0)
