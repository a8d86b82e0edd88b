import { AUDIT_RULES } from '../core/audit/entry.ts'
import type { Ports } from '../ports/ports.ts'
import { AuditKeeper } from '../services/audit/audit-keeper.ts'
import { AuditLog } from '../services/audit/audit-log.ts'
import { AuditReading } from '../services/audit/audit-reading.ts'
import { AuditViews } from '../services/audit/audit-views.ts'
import type { AppConfig } from './config.ts'

/** The audit log: who writes it, who reads it, and who looks after it. */
export interface AuditServices {
  readonly audit: AuditLog
  readonly auditViews: AuditViews
  readonly auditReading: AuditReading
  readonly keeper: AuditKeeper
}

/** They are made before all others, which write to it. */
export function createAuditServices(ports: Pick<Ports, 'store' | 'clock'>, config: AppConfig): AuditServices {
  const audit = new AuditLog(ports)
  return {
    audit,
    auditViews: new AuditViews(ports),
    auditReading: new AuditReading(ports, config.auditHead ?? null),
    keeper: new AuditKeeper(ports, audit, { ...AUDIT_RULES, ...config.audit }, config.auditHead ?? null),
  }
}
