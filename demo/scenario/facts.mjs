// What the tokens say of themselves, for a service that has no node to ask: demo/tokens.json.
import { ethers } from './tools.mjs'

/** A text in either form: an ABI string, or the bytes32 of early tokens. */
function text(hex) {
  if (hex === null || hex === '0x') return null
  if (hex.length === 66) return Buffer.from(hex.slice(2), 'hex').toString('utf8').replace(/\0+$/, '')
  return ethers.AbiCoder.defaultAbiCoder().decode(['string'], hex)[0]
}

function decimals(hex) {
  if (hex === null || hex.length < 66) return null
  const number = BigInt(hex.slice(0, 66))
  return number < 256n ? Number(number) : null
}

export function tokenFacts(tokens, state) {
  return Object.entries(tokens).filter(([name]) => state[name]).map(([name, token]) => {
    const { calls } = state[name]
    return {
      address: token.address, name: text(calls.name), symbol: text(calls.symbol), decimals: decimals(calls.decimals),
      zeroAddressHolds: token.zeroAddressHolds ?? false,
    }
  })
}
