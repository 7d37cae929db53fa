// What the contracts themselves say of their tokens, at every block where it can have changed: the truth that
// ledgers of events are compared with, and the answers a node would give for tokens whose events do not explain them.
import { ethers } from './tools.mjs'

const word = (hex) => ethers.zeroPadValue(hex, 32).slice(2)
const SELECTOR = { name: '0x06fdde03', symbol: '0x95d89b41', decimals: '0x313ce567', totalSupply: '0x18160ddd', balanceOf: '0x70a08231' }
const TRANSFERS = new Set([
  'Transfer(address,address,uint256)', 'Deposit(address,uint256)', 'Withdrawal(address,uint256)',
].map(ethers.id))

/** Addresses in a log: in the topics, or, in the early form, in the data. */
function parties(log) {
  const words = [...log.topics.slice(1), ...(log.topics.length === 1 ? [log.data.slice(0, 66), `0x${log.data.slice(66, 130)}`] : [])]
  return words.filter((w) => /^0x0{24}/.test(w)).map((w) => `0x${w.slice(26)}`)
}

const number = (answer) => (answer.result && answer.result.length === 66 ? `${BigInt(answer.result)}` : null)

export async function recordState(chain, lines, tokens) {
  const out = {}
  for (const [name, token] of Object.entries(tokens)) {
    if (token.type === 'ERC1155') continue
    const ask = (data, block) => ['eth_call', { to: token.address, data }, block]
    const meta = await chain.batch(['name', 'symbol', 'decimals'].map((m) => ask(SELECTOR[m], 'latest')))
    const entry = { address: token.address, calls: {}, supply: [], balances: {} }
    ;['name', 'symbol', 'decimals'].forEach((m, i) => (entry.calls[m] = meta[i].result ?? null))
    const known = new Set(token.unnamed)
    const history = (list, block, value) => value !== null && list.at(-1)?.[1] !== value && list.push([block, value])
    for (const { block, receipts, traces } of lines) {
      const called = traces.some((t) => t.action.to === token.address || t.result?.address === token.address)
      if (!called) continue
      const inBlock = new Set(receipts.flatMap((r) => r.logs).filter((l) => l.address === token.address && TRANSFERS.has(l.topics[0])).flatMap(parties))
      for (const r of receipts) if (r.to === token.address) inBlock.add(r.from)
      for (const a of inBlock) known.add(a)
      const asked = [...(token.exact === false ? known : inBlock)].sort()
      const at = Number(block.number)
      const [supply, ...balances] = await chain.batch([ask(SELECTOR.totalSupply, block.number), ...asked.map((a) => ask(SELECTOR.balanceOf + word(a), block.number))])
      history(entry.supply, at, number(supply))
      asked.forEach((a, i) => history((entry.balances[a] ??= []), at, number(balances[i])))
    }
    out[name] = entry
  }
  return { tokens: out }
}
