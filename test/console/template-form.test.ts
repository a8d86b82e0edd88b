import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  NEW_TEMPLATE,
  newTemplateBody,
  templateBody,
  templateChanges,
  templateDraft,
} from '../../console/pages/templates/template-draft.ts'

const TEMPLATE = {
  name: 'mine',
  image: 'me/x',
  args: '',
  disk: 10,
  env: { A: '1' },
  ports: [],
  registry: null,
  mounts: {},
  serverless: true,
  public: false,
  category: 'NVIDIA',
  startSsh: true,
  startJupyter: true,
  allowedCudaVersions: ['12.4'],
}

test('a new template sends what is no default, and is for endpoints', () => {
  const draft = { ...NEW_TEMPLATE, name: 'mine', image: 'me/x' }
  assert.deepEqual(newTemplateBody(draft), { name: 'mine', image: 'me/x', serverless: true })
})

test('the form of a template means the template', () => {
  assert.deepEqual(templateBody(templateDraft(TEMPLATE)), TEMPLATE)
})

test('a change of a template sends what changed', () => {
  const before = templateDraft(TEMPLATE)
  assert.deepEqual(templateChanges(before, { ...before, disk: '30', public: true }), { disk: 30, public: true })
})

test('a template of an endpoint has no volume, whatever was typed before', () => {
  const draft = { ...NEW_TEMPLATE, serverless: false, volume: '20' }
  assert.deepEqual(newTemplateBody(draft).mounts, { persistent: { size: 20, path: '/workspace' } })
  assert.equal(newTemplateBody({ ...draft, serverless: true }).mounts, undefined)
})
