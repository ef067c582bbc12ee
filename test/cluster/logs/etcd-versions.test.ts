// The versions of etcd that are refused.

import t from 'tap'
import { faultOfEtcd } from '../../../cluster/logs/etcd-versions.js'

t.test('versions that are known to lose data have a fault', async t => {
  for (const version of ['3.5.0', '3.5.1', '3.5.2', '3.5.0-rc.1'])
    t.match(faultOfEtcd(version), /another content/, version)
  for (const version of ['3.5.3', '3.5.4', '3.4.0', '3.4.20', '3.3.27', '2.3.8'])
    t.match(faultOfEtcd(version), /acknowledged writes/, version)
})

t.test('versions with the fixes have none, nor have those that are not known', async t => {
  for (const version of ['3.4.21', '3.4.23', '3.5.5', '3.5.21', '3.6.0', '3.7.1', '4.0.0', '', 'main'])
    t.equal(faultOfEtcd(version), undefined, version)
})
