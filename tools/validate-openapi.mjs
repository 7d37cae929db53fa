// Checks an OpenAPI document and, against its own schemas, the examples in it. Usage: node validate-openapi.mjs FILE
import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const document = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const result = await new Validator().validate(structuredClone(document));
if (!result.valid) {
  console.error(JSON.stringify(result.errors, null, 1));
  process.exit(1);
}
if (!document.openapi.startsWith('3.1.')) {
  console.error(`not OpenAPI 3.1: ${document.openapi}`);
  process.exit(1);
}

// Examples are not looked at by validators of the document.
const ajv = new Ajv2020({ strict: false });
addFormats(ajv);
ajv.addSchema({ $id: 'document', ...document });
const resolved = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'));
let examples = 0;
for (const [path, item] of Object.entries(document.paths)) {
  for (const [code, response] of Object.entries(item.get.responses)) {
    const content = response.content?.['application/json'];
    if (!content?.examples) continue;
    const check = ajv.compile(resolved(content.schema));
    for (const [name, example] of Object.entries(content.examples)) {
      examples += 1;
      if (!check(example.value)) {
        console.error(`${path} ${code} ${name}: ${ajv.errorsText(check.errors)}`);
        process.exitCode = 1;
      }
    }
  }
}
console.log(`valid, ${examples} examples`);
