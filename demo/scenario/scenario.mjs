// What happens on the demo chain: acts of every kind on set days, and ordinary traffic around them.
import { ethers, seeded } from './tools.mjs'

const GWEI = 10n ** 9n
const ETHER = 10n ** 18n
const DAY = 86_400
const { id, zeroPadValue, toBeHex, ZeroAddress } = ethers

/** An address nobody has a key for. */
export const nobody = (name) => ethers.getAddress(`0x${id(`quarry demo: ${name}`).slice(26)}`)

/** Topics that stand in several positions, so that and/or expressions differ. */
export const topics = Object.fromEntries(['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta'].map((n) => [n, id(n)]))

export const FIRST_DAY = Date.UTC(2024, 0, 20) / 1000
export const DAYS = 121
/** Days on which no block is made; 40 is 29 February. */
const SILENT_DAYS = new Set([5, 17, 18, 33, 51, 52, 53, 76, 90, 104])

/** Days on which a silent mint is made, and the number of the holder that gets it. */
export const SILENT_MINTS = [24, 58, 95]

export class Scenario {
  constructor(chain, artifacts) {
    Object.assign(this, { chain, artifacts })
    this.random = seeded(20_240_120)
    this.names = {}
    this.hashes = {}
    this.holders = Array.from({ length: 110 }, (_, i) => nobody(`holder ${i}`))
    this.validators = ['north', 'south', 'west'].map((n) => nobody(`validator ${n}`))
    this.stepsDone = 0
  }

  /** Deploys a contract and gives the address a name. */
  async deploy(name, contract, args = [], from = 0, more = {}) {
    const artifact = this.artifacts[contract]
    const data = artifact.bytecode + artifact.interface.encodeDeploy(args).slice(2)
    const { hash, address } = await this.chain.send(from, { data, gas: 1_300_000, ...more })
    this.names[name] = { address, contract, hash }
    return address
  }

  at(name) {
    return this.names[name].address
  }

  /** Calls a function of a named contract. */
  async call(from, name, method, args = [], more = {}) {
    const { address, contract } = this.names[name]
    const data = this.artifacts[more.as ?? contract].interface.encodeFunctionData(method, args)
    const { note, as, ...rest } = more
    const tip = BigInt(this.random.between(0, 3000)) * (GWEI / 1000n)
    const sent = await this.chain.send(from, { to: address, data, tip, ...rest })
    if (note) this.hashes[note] = sent.hash
    return sent
  }

  async pay(from, to, value, more = {}) {
    const { note, ...rest } = more
    const sent = await this.chain.send(from, { to, value, gas: 21_000, ...rest })
    if (note) this.hashes[note] = sent.hash
    return sent
  }

  /** Lists of acts by day: each entry is one block. */
  acts() {
    const c = this
    const vaults = () => ['vaultA', 'vaultB', 'vaultC', 'vaultD'].map((n) => c.at(n))
    const fresh = (n) => c.chain.wallets[20 + n]
    const days = {}
    const on = (day, ...blocks) => (days[day] = [...(days[day] ?? []), ...blocks])

    on(0,
      async () => c.deploy('coin', 'Coin', ['Demo Coin', 'DEMO', 18, 1_000_000n * ETHER]),
      async () => c.deploy('signals', 'Signals'),
      async () => {
        await c.deploy('nativeFeed1', 'Aggregator', ['ETH / USD'])
      },
      async () => {
        await c.deploy('nativeFeedProxy', 'FeedProxy', [c.at('nativeFeed1')])
        c.hashes.transferToFresh = (await c.pay(1, fresh(0).address, 5n * ETHER, { type: 0 })).hash
      },
      async () => c.deploy('stableFeed', 'Aggregator', ['DUSD / USD']),
      async () => c.deploy('stableFeedProxy', 'FeedProxy', [c.at('stableFeed')]))
    on(1,
      async () => c.deploy('wrapped', 'WrappedCoin', [], 1),
      async () => c.deploy('ancient', 'AncientCoin', [21_000_000n * 10n ** 9n], 1),
      async () => c.deploy('toll', 'FeeCoin', [nobody('toll collector')], 2),
      async () => c.deploy('tide', 'RebaseCoin', [5_000_000n * ETHER], 2))
    on(2,
      async () => c.deploy('hush', 'SilentCoin', [], 3),
      async () => c.deploy('ash', 'AshCoin', [], 3),
      async () => c.deploy('liar', 'LyingCoin', [], 19),
      async () => c.deploy('dollarCode', 'StableCoin', [], 4),
      async () => c.deploy('dollar', 'Proxy1967', [c.at('dollarCode'),
        c.artifacts.StableCoin.interface.encodeFunctionData('mint', [c.chain.wallets[4].address, 10n ** 15n])], 4))
    on(3,
      async () => c.deploy('deeds', 'Deeds', [], 5),
      async () => c.deploy('kittens', 'EarlyKittens', [], 5),
      async () => c.deploy('goods', 'Goods', [], 5),
      async () => c.deploy('factory', 'Factory', [], 6))
    on(4,
      async () => {
        await c.deploy('vaultA', 'Vault', [], 7)
      },
      async () => c.deploy('vaultB', 'Vault', [], 7),
      async () => c.deploy('vaultC', 'Vault', [], 7),
      async () => c.deploy('vaultD', 'Vault', [], 7),
      async () => {
        await c.deploy('trouble', 'Trouble', [], 8)
        await c.deploy('batch', 'Batch', [], 8, { gas: 600_000 })
      })
    on(6,
      async () => {
        await c.deploy('mortal', 'Mortal', [], 9, { value: 3n * ETHER, gas: 300_000 })
        await c.deploy('mortalKept', 'Mortal', [], 9, { value: 2n * ETHER, gas: 300_000 })
        await c.deploy('undertaker', 'Undertaker', [], 9, { gas: 700_000 })
      },
      async () => c.deploy('signalsWarm', 'Signals', [], 10),
      async () => c.deploy('signalsRare', 'Signals', [], 10),
      async () => {
        // A contract whose code is empty, one that fails to be made, and one that runs out of gas while its code is stored.
        c.hashes.creationEmptyCode = (await c.chain.send(10, { data: '0x', gas: 60_000 })).hash
        const refused = await c.deploy('refusedChild', 'Child', [1, true], 10, { gas: 300_000 })
        c.hashes.creationReverted = c.names.refusedChild.hash
        await c.deploy('starvedCoin', 'Coin', ['Starved', 'STV', 18, 1], 10, { gas: 500_000 })
        c.hashes.creationOutOfGas = c.names.starvedCoin.hash
        delete c.names.refusedChild
        delete c.names.starvedCoin
        return refused
      })
    // Creations by factories.
    on(8, async () => {
      await c.call(6, 'factory', 'make', [1], { gas: 400_000, note: 'create' })
      await c.call(6, 'factory', 'make', [2], { gas: 400_000, value: ETHER, note: 'createWithValue' })
      await c.call(6, 'factory', 'make2', [3, id('salt')], { gas: 400_000, value: 7n, note: 'create2' })
    }, async () => {
      await c.call(6, 'factory', 'makeNested', [4], { gas: 900_000, value: 11n, note: 'createNested' })
      await c.call(6, 'factory', 'makeRefused', [5], { gas: 400_000, note: 'createRefused' })
    }, async () => {
      await c.call(6, 'factory', 'makeThenRevert', [6], { gas: 400_000, note: 'createThenRevert' })
      await c.call(6, 'factory', 'makeUnderRevert', [7], { gas: 500_000, value: 13n, note: 'createUnderRevert' })
      await c.call(6, 'factory', 'makeBroken', [], { gas: 400_000, note: 'createBroken' })
    }, async () => {
      await c.call(6, 'factory', 'makeTwice', [8, id('twice')], { gas: 600_000, note: 'createCollision' })
      await c.call(6, 'factory', 'clone', [c.at('dollarCode')], { gas: 400_000, note: 'clone' })
    })
    // Failures of whole transactions.
    const failures = [
      ['withReason', [], 'revertReason'], ['withoutReason', [], 'revertEmpty'], ['withCustom', [42], 'revertCustom'],
      ['withPlainCustom', [], 'revertPlainCustom'], ['panicAssert', [], 'panicAssert'], ['panicDivision', [], 'panicDivision'],
      ['panicIndex', [], 'panicIndex'], ['panicOverflow', [], 'panicOverflow'], ['invalidOpcode', [], 'invalidOpcode'],
      ['outOfGas', [], 'outOfGas'], ['longReason', [], 'revertLong'],
    ]
    on(10, async () => {
      for (const [method, args, note] of failures.slice(0, 6)) await c.call(8, 'trouble', method, args, { note, gas: 90_000 })
    }, async () => {
      for (const [method, args, note] of failures.slice(6)) await c.call(11, 'trouble', method, args, { note, gas: 90_000 })
      await c.call(11, 'trouble', 'withReason', [], { value: 5n * ETHER, note: 'revertWithValue', gas: 90_000 })
    }, async () => {
      await c.call(8, 'trouble', 'tryAll', [], { value: 100n, gas: 600_000, note: 'failuresWithin' })
      await c.chain.send(8, { to: c.at('coin'), data: '0xdeadbeef', gas: 60_000 })
    })
    // Native coin moved by contracts.
    on(12, async () => {
      const [a, b, d, e] = vaults()
      await c.call(7, 'vaultA', 'relay', [[b, d, e], fresh(1).address], { value: 4n * ETHER, gas: 400_000, note: 'relayDeep' })
      await c.call(7, 'vaultA', 'split', [c.holders.slice(0, 8)], { value: 8n * ETHER, gas: 500_000, note: 'split' })
      await c.call(7, 'vaultB', 'payThenRevert', [a], { value: ETHER, note: 'payThenRevert' })
    }, async () => {
      await c.call(7, 'vaultC', 'payUnderRevert', [nobody('half paid')], { value: 2n * ETHER, gas: 300_000, note: 'payUnderRevert' })
      await c.call(7, 'vaultA', 'callKinds', [c.at('vaultB')], { value: 1000n, gas: 400_000, note: 'callKinds' })
      await c.call(7, 'vaultD', 'overdraw', [nobody('overdraw')], { note: 'overdraw' })
      await c.chain.send(7, { to: c.at('vaultB'), value: 12_345n, data: '0xcafebabe00', gas: 80_000 })
    }, async () => {
      await c.pay(12, c.at('vaultA'), 3n * ETHER, { gas: 60_000, type: 1, accessList: [{ address: c.at('vaultA'), storageKeys: [zeroPadValue('0x', 32)] }], note: 'accessList' })
      await c.pay(12, c.at('wrapped'), 2n * ETHER, { gas: 80_000, note: 'wrapByPaying' })
      await c.pay(12, c.chain.wallets[12].address, ETHER, { note: 'toSelf' })
      await c.pay(12, nobody('zero value'), 0n, { note: 'zeroValue' })
      await c.chain.send(12, { to: nobody('message'), data: ethers.hexlify(ethers.toUtf8Bytes('a message to nobody')), gas: 40_000 })
      await c.pay(12, '0x0000000000000000000000000000000000000004', 9n, { gas: 40_000, note: 'toPrecompile' })
      await c.pay(12, ZeroAddress, 10n ** 15n, { note: 'toZeroAddress' })
    })
    // The ends of contracts.
    on(14, async () => {
      await c.call(9, 'mortal', 'end', [nobody('heir')], { note: 'selfdestructLater' })
      await c.call(9, 'mortalKept', 'end', [c.at('mortalKept')], { note: 'selfdestructToItself' })
      await c.call(9, 'undertaker', 'makeAndEnd', [nobody('heir')], { value: ETHER, gas: 400_000, note: 'selfdestructSameTx' })
    }, async () => {
      await c.call(9, 'undertaker', 'makeAndBurn', [], { value: ETHER / 2n, gas: 400_000, note: 'selfdestructBurnt' })
      await c.call(9, 'undertaker', 'endUnderRevert', [nobody('no heir')], { value: ETHER, gas: 400_000, note: 'selfdestructUnderRevert' })
      await c.deploy('stillborn', 'Stillborn', [nobody('heir')], 9, { value: 77n, gas: 200_000 })
      c.hashes.selfdestructInConstructor = c.names.stillborn.hash
    }, async () => {
      await c.pay(9, c.at('mortal'), 55n, { gas: 60_000 })
      await c.call(9, 'mortal', 'end', [nobody('second heir')], { note: 'selfdestructAgain' })
    })
    // Accounts with code of their own (EIP-7702).
    on(16, async () => {
      const authorization = c.chain.authorize(13, c.at('batch'), false)
      const transfer = c.artifacts.Coin.interface.encodeFunctionData('transfer', [nobody('holder 3'), 0])
      c.hashes.setCode = (await c.chain.send(14, {
        type: 4, to: c.chain.wallets[13].address, gas: 300_000, authorizationList: [authorization.signed],
        data: c.artifacts.Batch.interface.encodeFunctionData('run', [[nobody('batch payee'), c.at('coin')], [ETHER, 0], ['0x', transfer]]),
      })).hash
    }, async () => {
      const authorization = c.chain.authorize(14, c.at('batch'), true)
      c.hashes.setCodeSelf = (await c.chain.send(14, {
        type: 4, to: c.chain.wallets[14].address, gas: 300_000, authorizationList: [authorization.signed],
        data: c.artifacts.Batch.interface.encodeFunctionData('run', [[nobody('batch payee'), nobody('second payee')], [3n, 4n], ['0x', '0x']]),
      })).hash
      authorization.spent()
    }, async () => {
      const authorization = c.chain.authorize(13, ZeroAddress, false)
      c.hashes.clearCode = (await c.chain.send(15, { type: 4, to: nobody('zero value'), gas: 100_000, authorizationList: [authorization.signed] })).hash
    })
    on(19, async () => {
      c.hashes.unprotected = (await c.pay(fresh(0), nobody('old style'), 1234n, { type: 0, unprotected: true })).hash
      await c.pay(fresh(1), nobody('paid by an account funded from within'), 10n ** 17n, { note: 'spendInternalFunds' })
    })
    // Rare events, far apart.
    for (const day of [20, 61, 118]) {
      on(day, async () => c.call(10, 'signalsRare', 'emitLog', [[topics.alpha, topics.zeta], '0x01'], { note: `rare${day}` }))
    }
    // Logs that look like transfers and are none, and transfers that move nothing.
    on(28, async () => {
      const transfer = id('Transfer(address,address,uint256)')
      const [a, b] = [c.holders[4], c.holders[5]].map((h) => zeroPadValue(h, 32))
      await c.call(10, 'signalsWarm', 'emitLog', [[transfer, a, b], `0x${'01'.repeat(31)}`], { note: 'notATransfer31Bytes' })
      await c.call(10, 'signalsWarm', 'emitLog', [[transfer, a], `0x${'02'.repeat(64)}`], { note: 'notATransfer2Topics' })
      await c.call(0, 'coin', 'transfer', [c.chain.wallets[0].address, 3n * ETHER], { note: 'tokenToSelf' })
      await c.call(0, 'coin', 'transfer', [nobody('token of zero'), 0], { note: 'tokenOfZero' })
    }, async () => {
      await c.call(0, 'coin', 'approve', [c.chain.wallets[16].address, 500n * ETHER], { note: 'approve' })
      await c.call(16, 'coin', 'transferFrom', [c.chain.wallets[0].address, c.holders[6], 123n * ETHER], { note: 'transferFrom' })
      await c.call(16, 'coin', 'transferFrom', [c.chain.wallets[0].address, c.holders[6], 900n * ETHER], { note: 'transferFromRefused' })
      await c.call(17, 'coin', 'transfer', [c.holders[7], 1], { note: 'transferCustomError' })
    })
    // Changes that no event tells.
    for (const [day, percent] of [[22, 110], [45, 95], [70, 130], [99, 101]]) {
      on(day, async () => c.call(2, 'tide', 'rebase', [5_000_000n * ETHER * BigInt(percent) / 100n]))
    }
    for (const day of SILENT_MINTS) {
      on(day, async () => c.call(3, 'hush', 'mintSilently', [c.holders[day], BigInt(day) * ETHER]))
    }
    for (const day of [26, 66, 103]) {
      on(day, async () => {
        await c.call(0, 'coin', 'burn', [1000n * ETHER], { note: `burn${day}` })
        await c.call(3, 'ash', 'transfer', [ZeroAddress, 500 + day], { note: `ash${day}` })
      })
    }
    // Proxies change what stands behind them; the price feed gets a second aggregator.
    on(36, async () => c.deploy('dollarCode2', 'StableCoin', [], 4),
      async () => c.call(4, 'dollar', 'upgradeTo', [c.at('dollarCode2')], { note: 'upgrade' }))
    on(60, async () => c.deploy('nativeFeed2', 'Aggregator', ['ETH / USD']),
      async () => c.call(0, 'nativeFeedProxy', 'setAggregator', [c.at('nativeFeed2')], { note: 'feedReplaced' }))
    // Collectibles leave the house, and batches of odd shapes.
    on(38, async () => {
      await c.call(5, 'goods', 'mintBatch', [c.chain.wallets[5].address, [1, 2, 2, 3], [10, 20, 5, 1]], { gas: 300_000, note: 'batchWithRepeat' })
      await c.call(5, 'goods', 'mintBatch', [c.holders[0], [], []], { note: 'batchEmpty' })
      await c.call(5, 'goods', 'safeTransferFrom', [c.chain.wallets[5].address, c.holders[1], 2, 7, '0x'], { note: 'single1155' })
      await c.call(5, 'goods', 'safeBatchTransferFrom', [c.chain.wallets[5].address, c.holders[2], [1, 3], [4, 1], '0x'], { note: 'batch1155' })
    })
    on(80, async () => {
      await c.call(7, 'vaultB', 'drain', [nobody('drain')], { note: 'drain' })
      await c.call(1, 'wrapped', 'deposit', [], { value: 50n * ETHER, note: 'deposit' })
    }, async () => {
      await c.call(1, 'wrapped', 'withdraw', [20n * ETHER], { note: 'withdraw' })
      await c.call(1, 'wrapped', 'transfer', [c.holders[9], ETHER], { note: 'wrappedTransfer' })
    })
    return days
  }

  /** One transaction of ordinary traffic. */
  async traffic() {
    const { random, chain, holders } = this
    const from = random.between(0, 18)
    const small = () => BigInt(random.between(1, 999)) * 10n ** 15n
    const holder = () => holders[Math.floor(random.next() ** 2 * holders.length)]
    const few = () => holders[random.below(24)]
    const style = random.pick([{}, {}, {}, { type: 0 }, { type: 1, accessList: [] }])
    switch (random.below(17)) {
      case 0: return this.pay(from, holder(), small(), style)
      case 1: return this.pay(from, chain.wallets[random.below(19)].address, small(), style)
      case 2: return this.call(0, 'coin', 'transfer', [holder(), small()], style)
      case 3: {
        const at = random.below(holders.length - 16)
        return this.call(0, 'coin', 'transferMany', [holders.slice(at, at + random.between(4, 16)), small()], { gas: 700_000 })
      }
      case 4: return this.call(4, 'dollar', 'transfer', [holder(), random.between(1, 10 ** 7)], { ...style, as: 'StableCoin' })
      case 5: return this.call(1, 'ancient', 'transfer', [few(), random.between(1, 10 ** 9)], style)
      case 6: return this.call(2, 'toll', 'transfer', [few(), small()], style)
      case 7: return this.call(2, 'tide', 'transfer', [few(), small()], style)
      case 8: return this.call(3, random.pick(['hush', 'ash']), 'transfer', [few(), random.between(1, 5000)], style)
      case 9: return this.call(random.between(0, 5), 'wrapped', 'deposit', [], { value: small(), ...style })
      case 10: {
        this.deed = (this.deed ?? 0) + 1
        if (this.deed % 7 === 0) return this.call(5, 'deeds', 'burn', [this.deed - 1], style)
        if (this.deed % 3 === 0) return this.call(5, 'deeds', 'transferFrom', [chain.wallets[5].address, few(), this.deed - 1], style)
        return this.call(5, 'deeds', 'mint', [chain.wallets[5].address, this.deed], style)
      }
      case 11: {
        this.kitten = (this.kitten ?? 0) + 1
        const mine = chain.wallets[5].address
        await this.call(5, 'kittens', 'breed', [mine], style)
        return this.kitten % 2 ? null : this.call(5, 'kittens', 'transfer', [few(), this.kitten], style)
      }
      case 12: return this.call(5, 'goods', 'mint', [few(), random.between(1, 9), random.between(1, 50)], style)
      case 13: return this.call(7, 'vaultA', 'relay', [[this.at('vaultB'), this.at('vaultC')].slice(random.below(2)), holder()], { value: small(), gas: 250_000 })
      case 14: return this.call(from, 'vaultD', 'split', [Array.from({ length: random.between(2, 6) }, holder)], { value: 6n * small(), gas: 450_000 })
      case 15: return this.call(random.between(0, 5), 'wrapped', 'withdraw', [BigInt(random.between(1, 400)) * 10n ** 15n], style)
      default: return this.call(19, 'liar', 'say', [few(), few(), random.between(1, 10 ** 6)], style)
    }
  }

  /** Logs of many shapes from the emitters of signals. */
  async signals() {
    const { random } = this
    const all = Object.values(topics)
    const lists = Array.from({ length: random.between(6, 26) }, () =>
      Array.from({ length: random.pick([0, 1, 1, 2, 2, 3, 3, 4, 4, 4]) }, () => all[Math.floor(random.next() ** 1.6 * all.length)]))
    const length = random.pick([0, 0, 1, 31, 32, 33, 64])
    const data = ethers.hexlify(Uint8Array.from({ length }, (_, i) => i + 1))
    await this.call(10, random.below(6) === 0 ? 'signalsWarm' : 'signals', 'emitMany', [lists, data], { gas: 400_000 })
    if (random.below(8) === 0) {
      const long = ethers.hexlify(Uint8Array.from({ length: 1000 }, (_, i) => i % 251))
      await this.call(10, 'signals', 'emitLog', [[topics.gamma, topics.alpha], long], { gas: 120_000 })
      await this.call(10, 'signals', 'emitTyped', [topics.alpha, topics.beta, zeroPadValue(toBeHex(random.below(5)), 32), long], { gas: 120_000 })
    }
  }

  async prices(day) {
    const { random } = this
    this.price = Math.max(1500, Math.min(4200, (this.price ?? 2480) * (1 + (random.next() - 0.48) / 18)))
    await this.call(0, day < 61 ? 'nativeFeed1' : 'nativeFeed2', 'submit', [BigInt(Math.round(this.price * 1e8))])
    // The stable coin's feed speaks less often: a day without an update carries the last price on.
    if (day % 3 !== 2) await this.call(0, 'stableFeed', 'submit', [BigInt(99_700_000 + random.below(600_000))])
  }

  /** Mines what is pending, with the next fee recipient, a gas limit that drifts, and a furnace that keeps the base fee alive. */
  async block(timestamp, { furnace = true } = {}) {
    const { chain, random } = this
    const fee = BigInt(this.last?.baseFeePerGas ?? 0)
    const room = Math.floor(chain.gasLimit * 0.95) - chain.pendingGas
    const wanted = Math.floor(chain.gasLimit * (fee < 8n * GWEI ? 0.9 : fee < 40n * GWEI ? random.next() : 0.1))
    const gas = Math.min(room, wanted)
    if (furnace && this.names.furnace && gas > 200_000) {
      await this.call(random.between(15, 18), 'furnace', 'work', [gas - 40_000], { gas })
    }
    const drift = Math.floor(chain.gasLimit / 1024) - 1
    chain.gasLimit += timestamp < FIRST_DAY + 70 * DAY ? drift : -drift
    await chain.rpc('evm_setBlockGasLimit', `0x${chain.gasLimit.toString(16)}`)
    await chain.rpc('anvil_setCoinbase', this.validators[random.pick([0, 0, 0, 1, 1, 2])])
    this.last = await chain.mine(timestamp)
    return this.last
  }

  async run(progress) {
    const acts = this.acts()
    const { random } = this
    let clock = FIRST_DAY + 8 * 3600
    for (let day = 0; day < DAYS; day++) {
      if (SILENT_DAYS.has(day)) {
        if (acts[day]) throw new Error(`day ${day} is silent and has acts`)
        continue
      }
      const planned = acts[day] ?? []
      const blocks = Math.max(planned.length + (day > 6 ? 1 : 0), day > 6 ? random.between(2, 4) : 0)
      const start = FIRST_DAY + day * DAY
      // Some days begin with a block at midnight exactly, some end with one a second before.
      const times = new Set()
      if (day % 10 === 4) times.add(start)
      if (day % 10 === 8) times.add(start + DAY - 1)
      while (times.size < blocks) times.add(Math.max(clock + 12, start) + 12 * random.below(Math.floor((start + DAY - 13 - Math.max(clock + 12, start)) / 12)))
      const ordered = [...times].sort((a, b) => a - b)
      for (const [i, time] of ordered.entries()) {
        if (planned[i]) await planned[i]()
        if (day === 1 && i === 0) await this.deploy('furnace', 'Furnace', [], 0, { gas: 300_000 })
        const empty = !planned[i] && i > 0 && random.below(12) === 0
        if (!empty && day > 4) {
          if (i === 0) await this.prices(day)
          if (!planned[i]) {
            for (let n = random.between(0, 5); n > 0; n--) await this.traffic()
            if (day > 6 && random.below(2) === 0) await this.signals()
          }
        }
        await this.block(time, { furnace: !empty && !planned[i] })
        clock = time
      }
      progress(day)
    }
  }
}
