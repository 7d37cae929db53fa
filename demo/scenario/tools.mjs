// What the pinned packages under tools/ give, and where things lie.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const require = createRequire(new URL('../../tools/package.json', import.meta.url))

export const ethers = require('ethers')
export const solc = require('solc')
export const path = (relative) => fileURLToPath(new URL(relative, import.meta.url))
export const anvilProgram = process.env.QUARRY_ANVIL || path('../../tools/node_modules/.bin/anvil')

/** The same numbers in every run. */
export function seeded(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (n) => Math.floor(next() * n)
  return { next, below, between: (low, high) => low + below(high - low + 1), pick: (list) => list[below(list.length)] }
}
