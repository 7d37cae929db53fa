// Reads the recording as a stranger would: every link, root and count, and a ledger of native balances from causes
// alone, compared with what the node says.
import { bloomOf, headerHash, listRoot, receiptBytes } from './trie.mjs'
import { ethers } from './tools.mjs'

/** Bytes of a transaction, from the fields the node shows. */
function transactionBytes(tx) {
  const type = Number(tx.type)
  const fields = {
    type, nonce: Number(tx.nonce), to: tx.to, value: tx.value, data: tx.input, gasLimit: tx.gas,
    chainId: tx.chainId ?? 0,
    signature: { r: ethers.zeroPadValue(ethers.toBeHex(BigInt(tx.r)), 32), s: ethers.zeroPadValue(ethers.toBeHex(BigInt(tx.s)), 32), v: Number(tx.v) },
  }
  if (type < 2) fields.gasPrice = tx.gasPrice
  else Object.assign(fields, { maxFeePerGas: tx.maxFeePerGas, maxPriorityFeePerGas: tx.maxPriorityFeePerGas })
  if (type > 0) Object.assign(fields, { accessList: tx.accessList, signature: { ...fields.signature, v: Number(tx.yParity) + 27 } })
  if (type === 4) {
    fields.authorizationList = tx.authorizationList.map((a) => ({
      address: a.address, nonce: BigInt(a.nonce), chainId: BigInt(a.chainId),
      signature: ethers.Signature.from({ r: ethers.zeroPadValue(ethers.toBeHex(BigInt(a.r)), 32), s: ethers.zeroPadValue(ethers.toBeHex(BigInt(a.s)), 32), v: Number(a.yParity) + 27 }),
    }))
  }
  fields.signature = ethers.Signature.from(fields.signature)
  return ethers.Transaction.from(fields)
}

/** Whether the frame or one above it failed. */
function failed(frame, byPath) {
  for (let n = frame.traceAddress.length; n >= 0; n--) {
    if (byPath.get(frame.traceAddress.slice(0, n).join('_')).error) return true
  }
  return false
}

/** Checks one line; answers what it found wrong, as sentences. */
export function checkLine({ block, receipts, traces }, parent) {
  const wrong = []
  const expect = (ok, what) => ok || wrong.push(`block ${Number(block.number)}: ${what}`)
  expect(block.hash === headerHash(block), 'hash is not that of its header')
  expect(!parent || block.parentHash === parent.hash, 'parent link')
  expect(!parent || Number(block.timestamp) > Number(parent.timestamp), 'time does not rise')
  expect(receipts.length === block.transactions.length, 'number of receipts')
  const bytes = block.transactions.map(transactionBytes)
  block.transactions.forEach((tx, i) => {
    expect(bytes[i].hash === tx.hash, `transaction ${i}: hash`)
    expect(bytes[i].from?.toLowerCase() === tx.from, `transaction ${i}: sender`)
    expect(receipts[i].transactionHash === tx.hash, `transaction ${i}: receipt of another`)
    const own = traces.filter((t) => t.transactionHash === tx.hash)
    expect(own.length > 0 && own[0].traceAddress.length === 0, `transaction ${i}: no top call`)
    for (const t of own) {
      const children = own.filter((c) => c.traceAddress.length === t.traceAddress.length + 1 && t.traceAddress.every((n, k) => c.traceAddress[k] === n))
      expect(children.length === t.subtraces, `transaction ${i}: frame [${t.traceAddress}] says ${t.subtraces} subtraces, has ${children.length}`)
    }
    expect(Boolean(own[0]?.error) === (Number(receipts[i].status) === 0), `transaction ${i}: status and trace differ`)
  })
  expect(listRoot(bytes.map((tx) => tx.serialized)) === block.transactionsRoot, 'transactions root')
  expect(listRoot(receipts.map(receiptBytes)) === block.receiptsRoot, 'receipts root')
  const logs = receipts.flatMap((r) => r.logs)
  expect(bloomOf(logs) === block.logsBloom, 'logs bloom')
  logs.forEach((log, i) => expect(Number(log.logIndex) === i, `log ${i}: index ${Number(log.logIndex)}`))
  expect(receipts.reduce((sum, r) => sum + Number(r.gasUsed), 0) === Number(block.gasUsed), 'gas used')
  return wrong
}

/** Balances from causes: opening balances, value, fees, ends of contracts. */
export class Ledger {
  constructor(alloc) {
    this.balances = new Map(Object.entries(alloc).map(([a, { balance }]) => [a.toLowerCase(), BigInt(balance)]))
    this.destroyed = 0n
    this.burnt = 0n
  }

  add(address, amount) {
    const key = address.toLowerCase()
    this.balances.set(key, (this.balances.get(key) ?? 0n) + amount)
    this.touched.add(key)
  }

  apply({ block, receipts, traces }) {
    this.touched = new Set([block.miner])
    const base = BigInt(block.baseFeePerGas)
    for (const r of receipts) {
      const used = BigInt(r.gasUsed)
      this.add(r.from, -used * BigInt(r.effectiveGasPrice))
      this.add(block.miner, used * (BigInt(r.effectiveGasPrice) - base))
      this.burnt += used * base
      const own = traces.filter((t) => t.transactionHash === r.transactionHash)
      const byPath = new Map(own.map((t) => [t.traceAddress.join('_'), t]))
      const born = new Set()
      for (const t of own) {
        if (failed(t, byPath)) continue
        if (t.type === 'create') {
          born.add(t.result.address)
          this.add(t.action.from, -BigInt(t.action.value))
          this.add(t.result.address, BigInt(t.action.value))
        } else if (t.type === 'call' && t.action.callType === 'call') {
          this.add(t.action.from, -BigInt(t.action.value))
          this.add(t.action.to, BigInt(t.action.value))
        } else if (t.type === 'suicide') {
          const { address, refundAddress, balance } = t.action
          if (address === refundAddress) {
            if (!born.has(address)) continue
            this.destroyed += BigInt(balance)
            this.add(address, -BigInt(balance))
          } else {
            this.add(address, -BigInt(balance))
            this.add(refundAddress, BigInt(balance))
          }
        }
      }
    }
    return this.touched
  }

  supply() {
    let sum = 0n
    for (const balance of this.balances.values()) sum += balance
    return sum
  }
}

const EVENTS = {
  transfer: ethers.id('Transfer(address,address,uint256)'),
  deposit: ethers.id('Deposit(address,uint256)'),
  withdrawal: ethers.id('Withdrawal(address,uint256)'),
}

/** Balances of a token by its events alone; ids count one each. */
export function eventBalances(lines, token) {
  const balances = new Map()
  const add = (word, amount) => {
    const holder = `0x${word.slice(-40)}`
    balances.set(holder, (balances.get(holder) ?? 0n) + amount)
  }
  for (const log of lines.flatMap((l) => l.receipts).flatMap((r) => r.logs)) {
    if (log.address !== token.address) continue
    const [kind, ...rest] = log.topics
    const words = [...rest, ...(log.data.slice(2).match(/.{64}/g) ?? []).map((w) => `0x${w}`)]
    const amount = token.type === 'ERC721' ? 1n : BigInt(words.at(-1) ?? 0)
    if (kind === EVENTS.transfer) {
      add(words[0], -amount)
      add(words[1], amount)
    } else if (kind === EVENTS.deposit) add(words[0], amount)
    else if (kind === EVENTS.withdrawal) add(words[0], -amount)
  }
  return balances
}

/** Whether the events explain what the contract says of every holder; `exact` in the manifest is held to it. */
export function checkTokens(lines, tokens, state) {
  const wrong = []
  for (const [name, token] of Object.entries(tokens)) {
    if (!state[name]) continue
    const told = eventBalances(lines, token)
    const zeroHolds = token.zeroAddressHolds === true
    const differing = Object.entries(state[name].balances).filter(([holder, history]) => {
      if (holder === ethers.ZeroAddress && !zeroHolds) return false
      const said = BigInt(history.at(-1)?.[1] ?? 0)
      // Minted from the zero address, so what it holds by events lacks the supply.
      const supply = BigInt(state[name].supply.at(-1)[1])
      return said !== (told.get(holder) ?? 0n) + (holder === ethers.ZeroAddress ? supply : 0n)
    })
    if (token.exact !== false && differing.length > 0) wrong.push(`${name}: events do not explain ${differing[0][0]} and ${differing.length - 1} more`)
    if (token.exact === false && differing.length === 0) wrong.push(`${name}: events explain everything, against the manifest`)
  }
  return wrong
}

/** What the recording holds, by operation of the specification. */
export function coverage(lines) {
  const n = {}
  const count = (key, by = 1) => (n[key] = (n[key] ?? 0) + by)
  const days = new Map()
  for (const { block, receipts, traces } of lines) {
    const day = new Date(Number(block.timestamp) * 1000).toISOString().slice(0, 10)
    days.set(day, (days.get(day) ?? 0) + 1)
    count('blocks')
    if (block.transactions.length === 0) count('blocks: empty')
    for (const tx of block.transactions) {
      count('transactions')
      count(`transactions: type ${Number(tx.type)}`)
      if (!tx.to) count('transactions: creations')
    }
    for (const r of receipts) {
      if (Number(r.status) === 0) count('transactions: failed')
      for (const log of r.logs) {
        count('logs')
        count(`logs: ${log.topics.length} topics`)
      }
    }
    for (const t of traces) {
      count('traces')
      count(`traces: ${t.type === 'call' ? t.action.callType : t.type === 'create' ? t.action.creationMethod ?? 'create' : t.type}`)
      if (t.traceAddress.length > 0 && t.type === 'call' && BigInt(t.action.value) > 0n) count('traces: internal value')
      if (t.error) count(`traces: error ${t.error}`)
    }
  }
  return { counts: n, days: { first: [...days.keys()][0], last: [...days.keys()].at(-1), withBlocks: days.size } }
}
