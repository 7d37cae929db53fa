// A development node of our own, and the few verbs the scenario needs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { anvilProgram, ethers } from './tools.mjs'

const GWEI = 10n ** 9n
const MNEMONIC = 'test test test test test test test test test test test junk'

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

export class Chain {
  static async start({ chainId, genesisTime, gasLimit, baseFee, accounts, balance }) {
    const chain = new Chain()
    const port = await freePort()
    chain.url = `http://127.0.0.1:${port}`
    chain.chainId = chainId
    const args = [
      ['--host', '127.0.0.1'], ['--port', port], ['--chain-id', chainId], ['--timestamp', genesisTime],
      ['--hardfork', 'prague'], ['--order', 'fifo'], ['--no-mining'], ['--mnemonic', MNEMONIC],
      ['--accounts', accounts], ['--balance', balance], ['--gas-limit', gasLimit], ['--base-fee', baseFee],
      ['--quiet'],
    ].flat().map(String)
    chain.process = spawn(anvilProgram, args, { stdio: ['ignore', 'inherit', 'inherit'] })
    chain.process.on('error', (error) => {
      console.error(`anvil does not start: ${error.message}; run \`make setup\` first`)
      process.exit(1)
    })
    process.on('exit', () => chain.process.kill('SIGKILL'))
    const root = ethers.HDNodeWallet.fromPhrase(MNEMONIC, undefined, "m/44'/60'/0'/0")
    chain.wallets = Array.from({ length: accounts + 10 }, (_, i) => root.deriveChild(i))
    chain.nonces = new Map()
    chain.gasLimit = gasLimit
    chain.pending = []
    chain.pendingGas = 0
    const deadline = Date.now() + 20_000
    for (;;) {
      try {
        await chain.rpc('eth_chainId')
        return chain
      } catch (error) {
        if (Date.now() > deadline) throw new Error(`anvil does not answer: ${error.message}`)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }

  stop() {
    this.process.kill('SIGTERM')
  }

  async rpc(method, ...params) {
    const [answer] = await this.batch([[method, ...params]])
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`)
    return answer.result
  }

  /** Many requests at once; answers in order, errors included. */
  async batch(requests) {
    const answers = []
    for (let from = 0; from < requests.length; from += 500) {
      const part = requests.slice(from, from + 500)
      const body = part.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }))
      const response = await fetch(this.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const got = await response.json()
      got.sort((a, b) => a.id - b.id)
      answers.push(...got)
    }
    return answers
  }

  /** Signs and sends; answers the hash and, of a creation, the address to be. */
  async send(from, { to = null, data = '0x', value = 0n, gas = 150_000, type = 2, tip = GWEI, max = 200n * GWEI, ...rest }) {
    const wallet = typeof from === 'number' ? this.wallets[from] : from
    const nonce = this.nonces.get(wallet.address) ?? 0
    const fields = { type, chainId: this.chainId, nonce, to, data, value, gasLimit: gas }
    if (type < 2) fields.gasPrice = rest.gasPrice ?? 60n * GWEI
    else Object.assign(fields, { maxFeePerGas: max, maxPriorityFeePerGas: tip })
    if (rest.accessList) fields.accessList = rest.accessList
    if (rest.authorizationList) fields.authorizationList = rest.authorizationList
    if (rest.unprotected) delete fields.chainId
    this.nonces.set(wallet.address, nonce + 1)
    const signed = await wallet.signTransaction(fields)
    const hash = await this.rpc('eth_sendRawTransaction', signed)
    this.pending.push(hash)
    this.pendingGas += gas
    return { hash, address: to === null ? ethers.getCreateAddress({ from: wallet.address, nonce }) : null }
  }

  /** The next authorization of an account under EIP-7702; `self` when the account sends it itself. */
  authorize(from, address, self) {
    const wallet = this.wallets[from]
    const nonce = (this.nonces.get(wallet.address) ?? 0) + (self ? 1 : 0)
    if (!self) this.nonces.set(wallet.address, nonce + 1)
    const signed = wallet.authorizeSync({ address, nonce, chainId: this.chainId })
    return { signed, spent: () => self && this.nonces.set(wallet.address, nonce + 1) }
  }

  /** Mines one block with all that is pending. */
  async mine(timestamp) {
    await this.rpc('evm_setNextBlockTimestamp', timestamp)
    await this.rpc('evm_mine')
    const block = await this.rpc('eth_getBlockByNumber', 'latest', false)
    if (Number(block.timestamp) !== timestamp) throw new Error(`block ${block.number} has another time than asked for`)
    const mined = new Set(block.transactions)
    const left = this.pending.filter((hash) => !mined.has(hash))
    if (left.length > 0) throw new Error(`block ${Number(block.number)} left ${left.length} transactions out: ${left}`)
    this.pending = []
    this.pendingGas = 0
    return block
  }
}
