// Merkle Patricia root of an ordered list, and the hash of a header: what a reader of the chain will check.
import { ethers } from './tools.mjs'

const { encodeRlp, keccak256, toBeHex } = ethers
const EMPTY = keccak256('0x80')

/** A quantity as RLP wants it: no leading zeros, zero empty. */
export const quantity = (value) => (BigInt(value) === 0n ? '0x' : toBeHex(BigInt(value)))

const nibblesOf = (hex) => [...hex.slice(2)].map((c) => parseInt(c, 16))

function compact(nibbles, leaf) {
  const odd = nibbles.length % 2
  const flag = (leaf ? 2 : 0) + odd
  const all = odd ? [flag, ...nibbles] : [flag, 0, ...nibbles]
  return `0x${all.map((n) => n.toString(16)).join('')}`
}

/** A node is a nested list; below 32 bytes it stands in its parent as it is, else by its hash. */
function reference(node) {
  const encoded = encodeRlp(node)
  return encoded.length < 66 ? node : keccak256(encoded)
}

function build(entries, depth) {
  if (entries.length === 1) return [compact(entries[0].key.slice(depth), true), entries[0].value]
  let shared = 0
  const [first] = entries
  while (entries.every((e) => depth + shared < e.key.length && e.key[depth + shared] === first.key[depth + shared])) shared++
  if (shared > 0) return [compact(first.key.slice(depth, depth + shared), false), reference(build(entries, depth + shared))]
  const branch = Array.from({ length: 16 }, (_, nibble) => {
    const below = entries.filter((e) => e.key[depth] === nibble)
    return below.length > 0 ? reference(build(below, depth + 1)) : '0x'
  })
  return [...branch, entries.find((e) => e.key.length === depth)?.value ?? '0x']
}

export function listRoot(values) {
  if (values.length === 0) return EMPTY
  return keccak256(encodeRlp(build(values.map((value, i) => ({ key: nibblesOf(encodeRlp(quantity(i))), value })), 0)))
}

export function headerHash(b) {
  const fields = [
    b.parentHash, b.sha3Uncles, b.miner, b.stateRoot, b.transactionsRoot, b.receiptsRoot, b.logsBloom,
    quantity(b.difficulty), quantity(b.number), quantity(b.gasLimit), quantity(b.gasUsed), quantity(b.timestamp),
    b.extraData, b.mixHash, b.nonce, quantity(b.baseFeePerGas), b.withdrawalsRoot, quantity(b.blobGasUsed),
    quantity(b.excessBlobGas), b.parentBeaconBlockRoot, b.requestsHash,
  ]
  return keccak256(encodeRlp(fields))
}

export function receiptBytes(r) {
  const logs = r.logs.map((l) => [l.address, l.topics, l.data])
  const body = encodeRlp([quantity(r.status), quantity(r.cumulativeGasUsed), r.logsBloom, logs])
  return Number(r.type) === 0 ? body : `0x${Number(r.type).toString(16).padStart(2, '0')}${body.slice(2)}`
}

export function bloomOf(logs) {
  const bits = new Uint8Array(256)
  for (const log of logs) {
    for (const value of [log.address, ...log.topics]) {
      const hash = keccak256(value)
      for (const at of [2, 6, 10]) {
        const bit = parseInt(hash.slice(at, at + 4), 16) & 2047
        bits[255 - (bit >> 3)] |= 1 << (bit & 7)
      }
    }
  }
  return ethers.hexlify(bits)
}
