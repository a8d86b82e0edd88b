import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findObjectKind } from '../../../src/core/audit/object-kind.ts'

test('the name of an operation says what it is about', () => {
  const kinds = {
    endpoint: [
      ...['createEndpoint', 'deleteEndpoint', 'rollbackEndpoint', 'promoteRelease', 'saveEndpoint', 'restartEndpoint'],
      ...['updateEndpointTemplate', 'rotateEndpointKey', 'v1 PATCH /endpoints/{id}'],
    ],
    template: ['saveTemplate', 'deleteTemplate', 'v1 POST /templates'],
    secret: ['secretCreate', 'secretValueUpdate', 'updateSecret'],
    registry: ['saveRegistryAuth', 'createRegistry', 'v1 DELETE /containerregistryauth/{id}'],
    volume: ['createNetworkVolume', 'v1 POST /networkvolumes'],
    key: ['createKey', 'deleteKey'],
    account: ['createAccount', 'updateUserSettings', 'updateSshKeys'],
    worker: ['deleteEndpointWorker'],
  }
  for (const [kind, operations] of Object.entries(kinds)) {
    for (const operation of operations) assert.equal(findObjectKind(operation), kind, operation)
  }
  assert.equal(findObjectKind('purgeQueue'), null)
})
