import { z } from '@hono/zod-openapi'
import { RECEIVER_KINDS } from '../../../core/alerts/alert-receiver.ts'
import { DateTime, Name, text } from './common.ts'

const Kind = z.enum(RECEIVER_KINDS)

/** A receiver of alerts. Its whole address is never shown. */
export const ReceiverBody = z
  .object({
    id: z.string(),
    name: z.string(),
    kind: Kind,
    address: z.string().openapi({ description: 'origin of a URL, or the whole address of a mail' }),
    createdAt: DateTime,
    sentAt: DateTime.nullable().openapi({ description: 'time of the last message that it took' }),
    problem: z.string().nullable().openapi({ description: 'reason why it did not take the last message' }),
  })
  .openapi('AlertReceiver')

/** Body of a list of receivers. */
export type ReceiverBody = z.output<typeof ReceiverBody>

/** All receivers of the caller. */
export const ReceiverList = z.object({ alertReceivers: z.array(ReceiverBody) }).openapi('ListAlertReceiversResponse')

/** Body that adds a receiver. */
export const CreateReceiver = { name: Name, kind: Kind, address: text(2_048) }

/** Body that tries a receiver. */
export const TestReceiver = { receiver: z.string().min(1).max(191) }

/** The alerts of the caller that are not over. */
export const AlertList = z
  .object({
    alerts: z.array(
      z
        .object({
          endpointId: z.string(),
          endpointName: z.string(),
          cause: z.string(),
          text: z.string(),
          since: DateTime,
          raisedAt: DateTime,
        })
        .openapi('Alert'),
    ),
  })
  .openapi('ListAlertsResponse')
