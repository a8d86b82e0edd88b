import type { AlertReceiver } from '../../../core/alerts/alert-receiver.ts'
import type { ReceiverId } from '../../../core/ids.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { AlertList, CreateReceiver, ReceiverBody, ReceiverList, TestReceiver } from '../schemas/alerts.ts'
import { IdParam } from '../schemas/common.ts'

const TAG = 'Alerts'
const RECEIVERS = '/v2/account/alert-receivers'

/** Additions to the public contract: alerts of an account and their receivers. */
export function alertRoutes({ alerts }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/alerts',
        operationId: 'listAlerts',
        tag: TAG,
        level: 'read',
        summary: 'Alerts that were raised and are not over; nothing is looked at without a receiver',
        success: { status: 200, schema: AlertList },
      },
      async ({ caller }) => ({
        alerts: (await alerts.open(caller.owner)).map(
          ({ endpointId, name, cause, text, firstSeenAtMs, raisedAtMs }) => ({
            endpointId,
            endpointName: name,
            cause,
            text,
            since: instant(firstSeenAtMs),
            raisedAt: instant(raisedAtMs ?? firstSeenAtMs),
          }),
        ),
      }),
    ),
    route(
      {
        method: 'get',
        path: RECEIVERS,
        operationId: 'listAlertReceivers',
        tag: TAG,
        level: 'read',
        summary: 'The receivers of alerts of the caller, at most 10',
        success: { status: 200, schema: ReceiverList },
      },
      async ({ caller }) => ({ alertReceivers: (await alerts.receivers(caller.owner)).map(receiverBody) }),
    ),
    route(
      {
        method: 'post',
        path: RECEIVERS,
        operationId: 'createAlertReceiver',
        tag: TAG,
        level: 'write',
        summary: 'Adds a receiver of alerts: a webhook, a channel of Slack, or an e-mail address',
        body: { name: 'CreateAlertReceiverRequest', shape: CreateReceiver },
        success: { status: 201, schema: ReceiverBody },
        problems: [400, 409],
      },
      async ({ caller, body }) => receiverBody(await alerts.add(caller.owner, body)),
    ),
    route(
      {
        method: 'get',
        path: `${RECEIVERS}/{id}`,
        operationId: 'getAlertReceiver',
        tag: TAG,
        level: 'read',
        summary: 'One receiver of alerts, with the outcome of its last message',
        params: IdParam,
        success: { status: 200, schema: ReceiverBody },
        problems: [404],
      },
      async ({ caller, params }) => receiverBody(await alerts.find(caller.owner, params.id as ReceiverId)),
    ),
    route(
      {
        method: 'delete',
        path: `${RECEIVERS}/{id}`,
        operationId: 'deleteAlertReceiver',
        tag: TAG,
        level: 'write',
        summary: 'Removes a receiver of alerts with the messages that wait for it',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404],
      },
      async ({ caller, params }) => alerts.remove(caller.owner, params.id as ReceiverId),
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/alert-tests',
        operationId: 'testAlertReceiver',
        tag: TAG,
        level: 'write',
        summary: 'Sends a test to a receiver of alerts; the receiver has the outcome soon',
        body: { name: 'TestAlertReceiverRequest', shape: TestReceiver },
        success: { status: 201, schema: ReceiverBody },
        problems: [400, 404],
      },
      async ({ caller, body }) => receiverBody(await alerts.test(caller.owner, body.receiver as ReceiverId)),
    ),
  ]
}

function receiverBody({ id, name, kind, shown, createdAtMs, sentAtMs, problem }: AlertReceiver): ReceiverBody {
  const sentAt = sentAtMs === null ? null : instant(sentAtMs)
  return { id, name, kind, address: shown, createdAt: instant(createdAtMs), sentAt, problem }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}
