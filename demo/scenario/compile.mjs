// Compiles the contracts of the scenario, and writes some of them as verified sources.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ethers, path, solc } from './tools.mjs'

const settings = {
  optimizer: { enabled: true, runs: 200 },
  evmVersion: 'prague',
  outputSelection: { '*': { '*': ['abi', 'metadata', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
}

function input(sources) {
  return { language: 'Solidity', sources, settings }
}

function compileInput(given) {
  const output = JSON.parse(solc.compile(JSON.stringify(given)))
  const errors = (output.errors ?? []).filter((e) => e.severity === 'error')
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join('\n'))
  return output.contracts
}

/** name → { abi, bytecode, metadata, file, contract interface } */
export function compile() {
  const sources = {}
  for (const file of readdirSync(path('contracts/')).sort()) {
    sources[file] = { content: readFileSync(path(`contracts/${file}`), 'utf8') }
  }
  const artifacts = {}
  for (const [file, contracts] of Object.entries(compileInput(input(sources)))) {
    for (const [name, c] of Object.entries(contracts)) {
      artifacts[name] = {
        file,
        abi: c.abi,
        metadata: c.metadata,
        bytecode: `0x${c.evm.bytecode.object}`,
        interface: new ethers.Interface(c.abi),
      }
    }
  }
  return artifacts
}

/**
 * Writes verified sources in the two layouts that `quarry import contracts` reads: a repository tree
 * (full_match/<chain id>/<address>/), and a standard-JSON file with
 * its ABI beside it.
 */
export function writeVerified(artifacts, chainId, tree, standard) {
  rmSync(path('../contracts'), { recursive: true, force: true })
  for (const { name, address } of tree) {
    const folder = path(`../contracts/full_match/${chainId}/${ethers.getAddress(address)}`)
    const { metadata } = artifacts[name]
    for (const file of Object.keys(JSON.parse(metadata).sources)) {
      const target = join(folder, 'sources', file)
      mkdirSync(dirname(target), { recursive: true })
      writeFileSync(target, readFileSync(path(`contracts/${file}`)))
    }
    writeFileSync(join(folder, 'metadata.json'), metadata)
  }
  for (const { name } of standard) {
    // Only the sources the contract needs, compiled alone to be sure that they give the same code.
    const sources = {}
    for (const file of Object.keys(JSON.parse(artifacts[name].metadata).sources)) {
      sources[file] = { content: readFileSync(path(`contracts/${file}`), 'utf8') }
    }
    const given = input(sources)
    const alone = compileInput(given)[artifacts[name].file][name]
    if (`0x${alone.evm.bytecode.object}` !== artifacts[name].bytecode) throw new Error(`${name} alone compiles to other code`)
    writeFileSync(path(`../contracts/${name}.standard.json`), `${JSON.stringify(given, null, 1)}\n`)
    writeFileSync(path(`../contracts/${name}.abi.json`), `${JSON.stringify(alone.abi, null, 1)}\n`)
  }
}
